"""``python -m kernelcount``."""

import sys

# ``-m`` puts the current folder first on the import path: a random.py there would break torch.
if sys.path and not getattr(sys.flags, "safe_path", False):
    sys.path.append(sys.path.pop(0))

from kernelcount.cli import main

if __name__ == "__main__":
    main()
