// Codes that the shim (compiled with user code) and the runner agree on.
#pragma once

enum SimWarpOp {
    SIM_WARP_SYNC, SIM_SHUFFLE, SIM_BALLOT, SIM_MATCH_ANY, SIM_MATCH_ALL,
    SIM_ADD_U32, SIM_MIN_S32, SIM_MIN_U32, SIM_MAX_S32, SIM_MAX_U32, SIM_AND_U32, SIM_OR_U32, SIM_XOR_U32
};

enum SimBarrierOp { SIM_BARRIER, SIM_BARRIER_COUNT, SIM_BARRIER_AND, SIM_BARRIER_OR };
