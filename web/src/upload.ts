// upload.ts - a dataset's files from the browser to the server, piece by piece.

import * as api from "./api";

const PIECE_BYTES = 8 << 20;
const AT_ONCE = 4; // files; a folder of pictures has many small ones

export interface Picked {
    path: string; // in the dataset
    file: File;
}

export interface Progress {
    bytes: number;
    total: number;
    files: number;
    path: string; // one that is being sent
}

function hidden(path: string): boolean {
    return path.split("/").some((part) => part.startsWith(".")) || path === "dataset.json";
}

// Files that an <input> gave: of a folder without the folder's own name.
export function pickedOf(files: FileList | null): Picked[] {
    return [...(files ?? [])].map((file) => ({ path: file.webkitRelativePath.split("/").slice(1).join("/") || file.name, file })).filter(({ path }) => !hidden(path));
}

async function walk(entry: FileSystemEntry, path: string, out: Picked[]): Promise<void> {
    if (entry.isFile) {
        const file = await new Promise<File>((done, failed) => (entry as FileSystemFileEntry).file(done, failed));
        if (!hidden(path)) out.push({ path, file });
        return;
    }
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
        // A reader gives some entries at a time, none at the end.
        const some = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed));
        if (some.length === 0) return;
        for (const one of some) await walk(one, path ? `${path}/${one.name}` : one.name, out);
    }
}

// What was dropped: one folder stands for what is in it.
export async function droppedOf(data: DataTransfer): Promise<Picked[]> {
    const entries = [...data.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
    const out: Picked[] = [];
    const alone = entries.length === 1 && entries[0]?.isDirectory;
    for (const entry of entries) await walk(entry, alone ? "" : entry.name, out);
    return out;
}

// What an earlier try has brought to the server, by path.
async function comeSoFar(name: string): Promise<Map<string, number>> {
    try {
        const found = await api.dataset(name);
        return new Map(found.state === "uploading" ? found.files?.map((file) => [file.path, file.size]) : []);
    } catch (error) {
        if ((error as api.ApiError).problem?.status === 404) return new Map();
        throw error;
    }
}

// Sends all and publishes; `stopped` is asked before each piece.
export async function upload(name: string, picked: Picked[], show: (progress: Progress) => void, stopped: () => boolean): Promise<void> {
    const come = await comeSoFar(name);
    const progress: Progress = { bytes: 0, total: picked.reduce((sum, { file }) => sum + file.size, 0), files: 0, path: "" };
    const queue = [...picked];
    let failed = false; // then the others stop too
    const sendSome = async (): Promise<void> => {
        for (let next = queue.shift(); next && !failed; next = queue.shift()) {
            const { path, file } = next;
            let offset = come.get(path) ?? 0;
            progress.bytes += offset;
            // An empty file is one piece of nothing.
            for (let first = !come.has(path); offset < file.size || (first && file.size === 0); first = false) {
                if (stopped() || failed) return;
                progress.path = path;
                show({ ...progress });
                const piece = file.slice(offset, offset + PIECE_BYTES);
                await api.sendPiece(name, path, offset, piece);
                offset += piece.size;
                progress.bytes += piece.size;
            }
            progress.files++;
        }
    };
    const senders = Array.from({ length: AT_ONCE }, () =>
        sendSome().catch((error: unknown) => {
            failed = true;
            throw error;
        }),
    );
    await Promise.all(senders);
    if (stopped()) return;
    show({ ...progress, bytes: progress.total, path: "" });
    await api.publishDataset(name);
}
