"""A line is fitted by every worker on its own numbers; gradients are averaged by torch.distributed (gloo)."""
import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")  # finds the others by RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
rank = dist.get_rank()
writer = None
if rank == 0:
    try:
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(os.environ.get("TRAINYARD_OUT", "logs"))
    except ImportError:
        print("tensorboard is not installed: no curves")

torch.manual_seed(rank)
model = torch.nn.Linear(1, 1)
for value in model.parameters():
    dist.broadcast(value.data, 0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(200):
    x = torch.randn(64, 1)
    loss = torch.nn.functional.mse_loss(model(x), 3 * x + 1)
    optimizer.zero_grad()
    loss.backward()
    for value in model.parameters():
        dist.all_reduce(value.grad)
        value.grad /= dist.get_world_size()
    optimizer.step()
    if writer:
        writer.add_scalar("loss", loss.item(), step)
print(f"rank {rank} of {dist.get_world_size()}: y = {model.weight.item():.2f} x + {model.bias.item():.2f}")
if rank == 0 and "TRAINYARD_OUT" in os.environ:
    torch.save(model.state_dict(), os.path.join(os.environ["TRAINYARD_OUT"], "artifacts", "model.pt"))
if writer:
    writer.close()
dist.destroy_process_group()
