// What launchers of every kind share: texts, errors, numbers, arguments and memory.
#include <trunnion/big_integer.cc>
#include <trunnion/calls.cc>
#include <trunnion/decimal.cc>
#include <trunnion/errors.cc>
#include <trunnion/float_expressions.cc>
#include <trunnion/life.cc>
#include <trunnion/memory.cc>
#include <trunnion/numbers.cc>
#include <trunnion/output_memory.cc>
#include <trunnion/refusals.cc>
#include <trunnion/scalars.cc>
#include <trunnion/tensors.cc>
#include <trunnion/text.cc>
