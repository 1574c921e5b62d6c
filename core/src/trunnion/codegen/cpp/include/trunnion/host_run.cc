#include <trunnion/host_run.hpp>

namespace trunnion {

static bool raise_stream(const TVMFFIAny& given) {
  Text got;
  describe_type(got, given);
  return raise_stream_on_cpu(got);
}

// A stream is refused, but for 0: whoever passes on what they were given has that.
static bool refuse_stream(const Arguments& arguments) {
  const TVMFFIAny* given = arguments.stream();
  const bool none = given == nullptr || (given->type_index == kTVMFFIInt && given->v_int64 == 0);
  return none ? true : raise_stream(*given);
}

bool Turns::open() {
  gate_ = static_cast<Gate*>(map_forgetful(sizeof(Gate)));
  return gate_ != nullptr || raise_no_own_memory();
}

void Turns::close() {
  if (gate_ != nullptr) unmap_forgetful(gate_, sizeof(Gate));
}

bool prepare_call(Program& program, const CallRule& rule, CallBase& call, const Arguments& arguments,
                  bool outputs_given) {
  if (!rule.check(call, arguments, outputs_given) || !program.load()) return false;
  return refuse_stream(arguments) && rule.find_memory(call, outputs_given);
}

void fill(const FillStep& step, uint64_t address, uint64_t count) {
  unsigned char* at = reinterpret_cast<unsigned char*>(address + step.offset);
  if (step.width == 1) {
    fill_with<uint8_t>(step, at, count);
  } else if (step.width == 2) {
    fill_with<uint16_t>(step, at, count);
  } else {
    fill_with<uint32_t>(step, at, count);
  }
}

bool prepare_device(Program&, int64_t ordinal) {
  return ordinal == 0 || raise_ordinal(ordinal, kHostDevices);
}

}  // namespace trunnion
