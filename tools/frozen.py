"""Imported last by the server that processes are forked from: what it holds by then stays shared with all of them.

A full garbage collection writes to every object that it may collect, so each child's first one would copy whatever the
server had imported (44 of 50 MiB on a machine without a GPU, some 150 MiB with PyTorch for CUDA 13).
"""

import gc

gc.collect()
gc.freeze()
