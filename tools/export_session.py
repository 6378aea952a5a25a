"""Part of the text of an exported file: when the kernels may stand in for the original forward, and their one run.

Here: the guards, the search for the module's tensors, the life of prepared weights. Not here: arguments
(tools.export_match), what a step does (tools.export_steps), CUDA (tools.export_cuda).
Covers: mode, gradients, autocast, hooks on and replacement of submodules, weights moved, replaced or changed in
place, deterministic mode, copies of the module. Does not cover: plain attributes changed after construction;
weights changed through `.data`, which torch does not count.
Invariant: below the imports as in tools.export_steps; a call either runs the whole plan or changes nothing.
"""

import typing as _warpsmith_typing

import torch as _warpsmith_torch

from tools.export_cuda import _WarpsmithLauncher
from tools.export_match import _warpsmith_learn_arguments, _WarpsmithArguments
from tools.export_steps import _WarpsmithBound, _WarpsmithPlan, _WarpsmithUnusable, _WarpsmithValues


class _WarpsmithPrepared:
    """What the prepare steps made of one set of weights."""

    def __init__(
        self,
        device: _warpsmith_torch.device,
        values: _WarpsmithValues,
        sources: _WarpsmithValues,
        place: tuple[object, object],
    ) -> None:
        self.device = device
        self.values = values
        self.key, self.mark = place
        self.storages = {value.untyped_storage().data_ptr() for value in values.values()}
        # The aliases keep the old weights' memory, so that a new weight cannot come to lie at the same address.
        self._aliases = [tensor.detach() for tensor in sources.values()]
        self._stamps = [(name, _warpsmith_stamp(tensor)) for name, tensor in sources.items()]

    def fits(self, state: _WarpsmithValues) -> bool:
        """True while the weights are the ones it was made from, unchanged."""
        return all(
            stamp is not None and _warpsmith_stamp(state[name]) == stamp for name, stamp in self._stamps
        )


class _WarpsmithCaptured:
    """A plan's steps as a CUDA graph, with the tensors that it reads its inputs from and writes its results to."""

    def __init__(
        self,
        inputs: _WarpsmithValues,
        replay: _warpsmith_typing.Callable[[], object],
        made: _WarpsmithValues,
    ) -> None:
        self.key: object = None
        self.inputs = inputs
        self.replay = replay
        self.made = made
        self.last: tuple[object, object] | None = None

    def run(
        self, launcher: _WarpsmithLauncher, bound: _WarpsmithBound, given: _WarpsmithValues
    ) -> _WarpsmithValues:
        """One replay on the current stream; the results are overwritten by the next."""
        key, _ = launcher.stream(bound.device)
        if self.last is not None and self.last[0] != key:
            launcher.wait(self.last[1], list(self.inputs.values()))
        for name, tensor in self.inputs.items():
            tensor.copy_(given[name])
        self.replay()
        self.last = (key, launcher.record())
        return self.made


def _warpsmith_capture(
    plan: _WarpsmithPlan,
    launcher: _WarpsmithLauncher,
    bound: _WarpsmithBound,
    tensors: tuple[_WarpsmithValues, _WarpsmithValues],
) -> "_WarpsmithCaptured | None":
    """Capture the steps; `tensors`: everything at hand, and what stays in its place. None where there are no graphs."""
    values, fixed = tensors
    inputs: _WarpsmithValues = {}
    for spec in plan.inputs:
        inputs[spec.name] = _warpsmith_torch.empty_strided(
            spec.shape, spec.strides, dtype=spec.dtype, device=bound.device
        ).copy_(values[spec.name])

    def forward() -> _WarpsmithValues:
        made = {**inputs, **fixed}
        _, stream = launcher.stream(bound.device)
        for step in plan.steps:
            step.run(made, bound, stream)
        return made

    found = launcher.capture(bound.device, forward)
    return None if found is None else _WarpsmithCaptured(inputs, *found)


def _warpsmith_stamp(tensor: _warpsmith_torch.Tensor) -> tuple[int, int] | None:
    """Changes whenever the content may have; None for an inference tensor, whose changes torch does not count."""
    return None if tensor.is_inference() else (tensor.data_ptr(), tensor._version)


def _warpsmith_tensors(
    values: _warpsmith_typing.Iterable[object],
) -> _warpsmith_typing.Iterator[_warpsmith_torch.Tensor]:
    return (value for value in values if isinstance(value, _warpsmith_torch.Tensor))


def _warpsmith_device(
    given: _warpsmith_typing.Sequence[object], module: _warpsmith_torch.nn.Module
) -> _warpsmith_torch.device:
    """Where the call's tensors are: the first input's device, or the first weight's where there is no input."""
    for tensors in (_warpsmith_tensors(given), module.parameters(), module.buffers()):
        for tensor in tensors:
            return tensor.device
    raise _WarpsmithUnusable("there is no tensor whose device tells where to run")


def _warpsmith_owner(module: _warpsmith_torch.nn.Module, target: str) -> object:
    """The module inside that holds the tensor of this state_dict name."""
    owner: object = module
    for name in target.split(".")[:-1]:
        inside = owner._modules if isinstance(owner, _warpsmith_torch.nn.Module) else {}
        owner = inside.get(name)
    if not isinstance(owner, _warpsmith_torch.nn.Module):
        raise _WarpsmithUnusable(f"the module has no part that holds {target}")
    return owner


class _WarpsmithSession:
    """The kernels' side of one module."""

    def __init__(self, module: _warpsmith_torch.nn.Module, objection: str | None) -> None:
        self.module = module
        self.objection = objection
        inner = [m for m in module.modules() if m is not module]
        self.inner = [(m, m.training, len(m._forward_pre_hooks), len(m._forward_hooks)) for m in inner]
        parents = [m for m in module.modules() if m._modules]
        self.children = [(m._modules, dict(m._modules)) for m in parents]
        self.forget()

    def forget(self) -> None:
        """Drop what was prepared and looked up; the next call does it again."""
        self.prepared: _WarpsmithPrepared | None = None
        self.arguments: _WarpsmithArguments | None = None
        self.owners: list[_warpsmith_typing.Any] | None = None
        self.graph: _WarpsmithCaptured | None = None
        self.moved: dict[str, _warpsmith_typing.Any] = {}

    def __getstate__(self) -> dict[str, object]:
        # Copies and pickles of the module prepare their own weights.
        return {**vars(self), "prepared": None, "arguments": None, "owners": None, "graph": None, "moved": {}}

    def run(
        self,
        module: _warpsmith_typing.Any,
        plan: _WarpsmithPlan,
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> object:
        """Forward's result. Raises _WarpsmithUnusable, before anything changed, where the original must serve."""
        self._check_module(module, plan)
        arguments = self.arguments
        if arguments is None:
            captured = plan.arguments
            if captured is None:
                captured = _warpsmith_learn_arguments(module._warpsmith_get_inputs, len(plan.inputs))
            arguments = self.arguments = _WarpsmithArguments(module._warpsmith_forward, captured)
        given = arguments.tensors(args, kwargs)
        device = _warpsmith_device(given, module)
        launcher: _WarpsmithLauncher = module._warpsmith_launcher
        bound = launcher.bound(device, plan)
        context = launcher.context(device)
        if context is None:
            return self._guarded(plan, launcher, bound, given)
        with context:
            return self._guarded(plan, launcher, bound, given)

    def _check_module(self, module: object, plan: _WarpsmithPlan) -> None:
        if self.objection is not None:
            raise _WarpsmithUnusable(self.objection)
        if module is not self.module:
            raise _WarpsmithUnusable("this is a replica or a shallow copy of the module")
        if self.module.training is not plan.training:
            mode, call = ("training", "train()") if plan.training else ("evaluation", "eval()")
            raise _WarpsmithUnusable(f"the kernels were made for {mode} mode; call .{call} to use them")
        for inner, training, before, after in self.inner:
            if inner.training is not training:
                name = type(inner).__name__
                raise _WarpsmithUnusable(f"a {name} inside is in another mode than was verified")
            if len(inner._forward_pre_hooks) != before or len(inner._forward_hooks) != after:
                name = type(inner).__name__
                raise _WarpsmithUnusable(f"a {name} inside has hooks that the kernels would skip")
        for modules, snapshot in self.children:
            if modules != snapshot:
                raise _WarpsmithUnusable("modules inside were replaced after construction")
        if plan.atomics and _warpsmith_torch.are_deterministic_algorithms_enabled():
            raise _WarpsmithUnusable(
                "the kernels add in any order, and deterministic algorithms are asked for"
            )
        if _warpsmith_torch.is_autocast_enabled("cuda"):
            raise _WarpsmithUnusable("autocast is on, and the kernels were verified without it")
        if getattr(_warpsmith_torch.autograd.forward_ad, "_current_level", -1) >= 0:
            raise _WarpsmithUnusable("forward-mode derivatives are wanted, and the kernels have none")

    def _guarded(
        self,
        plan: _WarpsmithPlan,
        launcher: _WarpsmithLauncher,
        bound: _WarpsmithBound,
        given: _warpsmith_typing.Sequence[object],
    ) -> object:
        device = bound.device
        values = {spec.name: spec.fit(value, device) for spec, value in zip(plan.inputs, given)}  # noqa: B905
        state = self._state(plan, bound)
        grad = _warpsmith_torch.is_grad_enabled()
        if grad and any(t.requires_grad for t in (*_warpsmith_tensors(given), *state.values())):
            raise _WarpsmithUnusable(
                "a gradient is wanted, and the kernels have no backward; use torch.no_grad()"
            )
        for _, _, spec in plan.state:
            values[spec.name] = spec.fit(state[spec.name], device)
        try:
            if not grad:
                return self._execute(plan, launcher, bound, (values, state))
            with _warpsmith_torch.no_grad():
                return self._execute(plan, launcher, bound, (values, state))
        except (_WarpsmithUnusable, _warpsmith_torch.OutOfMemoryError):
            raise
        except Exception as error:  # whatever a step raises, the original forward can serve
            kind = type(error).__name__
            reason = f"a step failed on {device}: {kind}: {error}"
            launcher.give_up(device, reason)
            raise _WarpsmithUnusable(reason) from error

    def _state(self, plan: _WarpsmithPlan, bound: _WarpsmithBound) -> _WarpsmithValues:
        """The module's own tensors by their names in the plan."""
        if self.owners is None:
            self.owners = [(_warpsmith_owner(self.module, t), t.rpartition(".")[2]) for t, _, _ in plan.state]
        state: _WarpsmithValues = {}
        for (owner, name), (target, kind, spec) in zip(self.owners, plan.state):  # noqa: B905
            if kind == "parameter":
                tensor = owner._parameters.get(name)
            elif kind == "buffer":
                tensor = owner._buffers.get(name)
            else:
                tensor = self._constant(plan, bound, owner, (name, spec.name))
            if tensor is None:
                raise _WarpsmithUnusable(f"the module has no {kind} {target}")
            state[spec.name] = tensor
        return state

    def _constant(
        self, plan: _WarpsmithPlan, bound: _WarpsmithBound, owner: object, place: tuple[str, str]
    ) -> _warpsmith_typing.Any:
        """A tensor literal of forward, or a plain tensor attribute, which `.to()` leaves where it is."""
        attribute, name = place
        if name in plan.constants:
            if name not in bound.constants:
                bound.constants[name] = plan.constant(name, bound.device)
            return bound.constants[name]
        tensor = getattr(owner, attribute, None)
        if not isinstance(tensor, _warpsmith_torch.Tensor) or tensor.device == bound.device:
            return tensor
        stamp = _warpsmith_stamp(tensor)
        _, old_stamp, moved = self.moved.get(name, (None, None, None))
        if moved is None or stamp is None or stamp != old_stamp or moved.device != bound.device:
            moved = tensor.detach().to(bound.device)
            self.moved[name] = (tensor.detach(), stamp, moved)
        return moved

    def _prepared(
        self,
        plan: _WarpsmithPlan,
        launcher: _WarpsmithLauncher,
        bound: _WarpsmithBound,
        tensors: tuple[_WarpsmithValues, _WarpsmithValues],
    ) -> _WarpsmithPrepared:
        """What prepare makes of the current weights; run again only where they changed."""
        values, state = tensors
        key, stream = launcher.stream(bound.device)
        prepared = self.prepared
        if prepared is not None and prepared.device == bound.device and prepared.fits(state):
            if prepared.key != key:
                launcher.wait(prepared.mark, list(prepared.values.values()))
            return prepared
        if launcher.capturing():
            raise _WarpsmithUnusable("a CUDA graph is being captured before the weights were prepared")
        made = dict(values)
        with _warpsmith_torch.inference_mode(False), _warpsmith_torch.no_grad():
            for step in plan.prepare:
                step.run(made, bound, stream)
        sources = {name: state[name] for name in plan.prepare_reads}
        self.prepared = _WarpsmithPrepared(
            bound.device, {name: made[name] for name in plan.kept}, sources, (key, launcher.record())
        )
        return self.prepared

    def _execute(
        self,
        plan: _WarpsmithPlan,
        launcher: _WarpsmithLauncher,
        bound: _WarpsmithBound,
        tensors: tuple[_WarpsmithValues, _WarpsmithValues],
    ) -> object:
        values, state = tensors
        _, stream = launcher.stream(bound.device)
        storages: set[int] = set()
        if plan.prepare:
            prepared = self._prepared(plan, launcher, bound, tensors)
            values.update(prepared.values)
            storages = prepared.storages
        if plan.replay and not launcher.capturing():
            with launcher.replaying:
                captured = self._captured(plan, launcher, bound, tensors)
                if captured is not None:
                    return self._finished(plan, captured.run(launcher, bound, values), state, None)
        for step in plan.steps:
            step.run(values, bound, stream)
        return self._finished(plan, values, state, storages)

    def _captured(
        self,
        plan: _WarpsmithPlan,
        launcher: _WarpsmithLauncher,
        bound: _WarpsmithBound,
        tensors: tuple[_WarpsmithValues, _WarpsmithValues],
    ) -> "_WarpsmithCaptured | None":
        """The steps as a CUDA graph over the weights where they lie now; None where they must be run one by one."""
        values, state = tensors
        names = [spec.name for _, _, spec in plan.state]
        if any(values[name].data_ptr() != state[name].data_ptr() for name in names):
            return None  # a weight in another layout is copied at every call, to another place
        fixed = {name: values[name] for name in (*names, *plan.kept)}
        key = (bound.device, tuple(value.data_ptr() for value in fixed.values()))
        if self.graph is None or self.graph.key != key:
            self.graph = None  # its memory goes back before the next one takes its own
            self.graph = _warpsmith_capture(plan, launcher, bound, (values, fixed))
            if self.graph is not None:
                self.graph.key = key
        return self.graph

    def _finished(
        self,
        plan: _WarpsmithPlan,
        values: _WarpsmithValues,
        state: _WarpsmithValues,
        storages: "set[int] | None",
    ) -> object:
        """What forward returns; buffers of the module get their new content. Without `storages` all is copied."""
        results = []
        for name, copy in plan.outputs:
            value = values[name]
            # The caller may write to what it gets, which must be neither its own input nor our prepared weights.
            copied = copy or storages is None or value.untyped_storage().data_ptr() in storages
            results.append(value.clone() if copied else value)
        for name, source in plan.updates.items():
            state[name].copy_(values[source])
        if plan.structure == "tensor":
            return results[0]
        return results if plan.structure == "list" else tuple(results)
