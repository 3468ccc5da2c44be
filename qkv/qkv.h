// The public face of the qkv library: tensors, attention, modules, models, files.
#pragma once

#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/base/rng.h"
#include "qkv/base/shape.h"
#include "qkv/core/autograd.h"
#include "qkv/core/grad_check.h"
#include "qkv/core/tensor.h"
#include "qkv/ops/attention.h"
#include "qkv/ops/ops.h"
