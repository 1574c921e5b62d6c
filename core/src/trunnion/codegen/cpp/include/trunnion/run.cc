#include <trunnion/run.hpp>

namespace trunnion {

int load(Program& program, TVMFFIAny* result) {
  const Flight flight(program);
  if (!flight || !program.load()) return -1;
  return give_nothing(result), 0;
}

int ask(Program& program, TVMFFIAny* result) {
  program.ask();
  return give_nothing(result), 0;
}

int close(Program& program, TVMFFIAny* result) {
  if (!program.close()) return -1;
  return give_nothing(result), 0;
}

}  // namespace trunnion
