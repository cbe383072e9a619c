"""What this machine can measure, and what a library call launches on its GPU.

It is done in a process of its own (`__main__`), which `child` starts: the caller imports no torch.
"""
