// CUDA's device language for the host's C++ compiler. Precompiled once per mode; user text follows it unchanged.
//
// Includes no system header, as NVRTC includes none: user typedefs and names then meet the same world.
#include "../abi.h"
#include "language.h"
#include "vectors.h"
#include "math.h"
#include "half.h"
#include "bfloat16.h"
#include "warp.h"
#include "atomics.h"
#include "cooperative.h"
#include "entry.h"
