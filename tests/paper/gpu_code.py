"""What people write for a GPU, function by function; test_gpu_code.py has the counts."""

import copy
import io
import threading
from concurrent.futures import ThreadPoolExecutor

import torch


def generator(a):
    g = torch.Generator(device="cuda").manual_seed(1)
    return a + torch.rand(a.shape, device=a.device, generator=g)


def streams(a):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        b = a + 1
    b.record_stream(side)
    torch.cuda.current_stream().wait_event(side.record_event())
    return b * 2


def events(a):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    b = a + 1
    end.record()
    end.synchronize()
    print(start.elapsed_time(end))
    return b


def waits(a):
    b = a + 1
    torch.cuda.synchronize()
    return b * 2


def graph(a):
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        b = (a + 1).relu()
    recorded.replay()
    recorded.replay()
    return b


def random_graph(a):
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        b = torch.rand_like(a)
    recorded.replay()
    return b


def graphed(a):
    return torch.cuda.make_graphed_callables(torch.relu, (a,))(a)


def scales(a):
    w = torch.ones(1, device="cuda", requires_grad=True)
    scaler = torch.amp.GradScaler("cuda")
    optimizer = torch.optim.SGD([w], lr=0.1)
    scaler.scale((a * w).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    return w.detach()


def pinned(a):
    host = torch.ones(64).pin_memory()
    return a + host.to("cuda", non_blocking=True) + torch.ones(64, pin_memory=True).cuda()


def memory(a):
    torch.cuda.reset_peak_memory_stats()
    b = a + 1
    print(torch.cuda.memory_allocated(), torch.cuda.max_memory_reserved())
    assert torch.cuda.mem_get_info()[0] > 0
    torch.cuda.empty_cache()
    return b


def marked(a):
    with torch.cuda.nvtx.range("mine"):
        return a + 1


def to_numpy(a):
    return (a + 1).cpu().numpy()


def listed(a):
    return (a + 1).tolist()


def found(a):
    return len((a > 0).nonzero())


def saved(a):
    torch.save(a + 1, io.BytesIO())


def copied(a):
    layer = torch.nn.LayerNorm(64).to("cuda:0")
    return copy.deepcopy(layer)(a)


def after_another(a):
    return torch.zeros(64).to(a) + torch.ones(64).cuda(a.device.index)


def old_types(a):
    assert a.type() == "torch.cuda.FloatTensor"
    return a + torch.empty(64).type(torch.cuda.DoubleTensor).type("torch.cuda.FloatTensor")


def asks(a):
    assert (a.device.index, str(a.device), a.get_device()) == (0, "cuda:0", 0)
    assert a.data_ptr() % 16 == 0
    torch.cuda.set_device(0)
    torch.cuda.manual_seed(0)
    return a * torch.cuda.get_device_properties(0).multi_processor_count


def accelerates(a):
    kind = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else ""
    return a + torch.ones(1, device=kind)


def between_graphs(a):
    b = a + 1
    print("", end="")
    return b * apart()


@torch.compiler.disable
def apart():
    return torch.tensor([2.0], device="cuda") + torch.as_tensor([1.0], device="cuda")


def settings(a):
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = False
    return a + 1


def made_on_the_host(a):
    return a + 1, torch.ones(8, 4) * 2, torch.arange(3), [torch.zeros(2)]


def works_on_the_host(a):
    return a + 1, torch.ones(4, 4) @ torch.ones(4, 4)


def back_to_the_host(a):
    return (a * 2).cpu()


def printed(a):
    return f"{a.sum():.3f} on {a.device}"


def goes_on_without_casts(a):
    with torch.autocast("cuda", enabled=False):
        return ((a + 1) * 2).relu()


def sparse(a):
    where = torch.tensor([[0, 1], [1, 0]], device="cuda")
    return torch.sparse_coo_tensor(where, a[:2], (2, 2)).to_dense()


@torch.library.custom_op("kernelcount_tests::without_a_fake", mutates_args=())
def faceless(a: torch.Tensor) -> torch.Tensor:
    return a + 1


@torch.library.custom_op("kernelcount_tests::own", mutates_args=(), device_types="cuda")
def own_op(a: torch.Tensor) -> torch.Tensor:
    return a + 1


@own_op.register_fake
def _(a):
    return torch.empty_like(a)


def own(a):
    return own_op(a) * 2


def without_a_fake(a):
    return faceless(a)


def triton_kernel(a):
    raise RuntimeError("0 active drivers ([]). There should only be one.")


def threaded(a):
    thread = threading.Thread(target=lambda: print((a + 1).relu().shape))
    thread.start()
    thread.join()


def pooled(a):
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda i: a + i, range(2)))


POOL = ThreadPoolExecutor(1)
POOL.submit(int).result()  # its thread is there before anything is counted


def pooled_before(a):
    return POOL.submit(lambda: a + 1).result()


def at_its_place(a):
    same, other = a.contiguous(), a + 1
    if same.data_ptr() != a.data_ptr() or a[1:].data_ptr() != a.data_ptr() + a.stride(0) * 4:
        a = a.exp()
    if other.data_ptr() != a.data_ptr():
        other = other.relu()
    return other


def by_storage(a):
    where, there = a[1:].untyped_storage().data_ptr(), a.detach().untyped_storage().data_ptr()
    return a + 1 if where == there == a.data_ptr() != 0 == a[:0].data_ptr() else a.exp() * 2
