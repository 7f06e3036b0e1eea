// sure.tsx - a button for what cannot be undone: it asks once more, in its own place.

import { useEffect, useState } from "preact/hooks";

const ASK_MS = 4000;

export function Sure({ label, title, act }: { label: string; title: string; act: () => void }): preact.JSX.Element {
    const [asking, setAsking] = useState(false);
    useEffect(() => {
        if (!asking) return;
        const timer = setTimeout(() => setAsking(false), ASK_MS);
        return () => clearTimeout(timer);
    }, [asking]);
    return (
        <button
            class={`button ${asking ? "danger" : ""}`}
            type="button"
            title={title}
            onClick={() => {
                setAsking(!asking);
                if (asking) act();
            }}
        >
            {asking ? `Really ${label.toLowerCase()}?` : label}
        </button>
    );
}
