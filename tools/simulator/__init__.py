"""CUDA C++ on the CPU: compile with the host's compiler, run confined, observe, and model a GPU's time.

`compiler` turns source into a library, `arena` owns the buffers, `runner` executes launches in a process of its
own and returns a `report`; `timemodel` turns a report's metrics into a modelled time. The C++ side is `native/`.
"""
