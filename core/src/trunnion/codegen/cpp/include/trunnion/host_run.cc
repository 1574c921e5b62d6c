#include <trunnion/host_run.hpp>

namespace trunnion {

bool raise_stream(const TVMFFIAny& given) {
  Text got, expected;
  describe_type(got, given);
  return raise_argument_value(Name{"stream", 6}, got, expected << "None: the CPU has no streams");
}

bool refuse_stream(const Arguments& arguments) {
  const TVMFFIAny* given = arguments.stream();
  const bool none = given == nullptr || (given->type_index == kTVMFFIInt && given->v_int64 == 0);
  return none ? true : raise_stream(*given);
}

bool Turns::open() {
  holder_ = static_cast<Holder*>(map_forgetful(sizeof(Holder)));
  return holder_ != nullptr || raise_no_page();
}

void Turns::close() {
  if (holder_ != nullptr) munmap(holder_, sizeof(Holder));
}

static const void* this_thread() {
  static thread_local char own;
  return &own;
}

Turn::Turn(const Turns& turns)
    : holder_(turns.holder_), mine_(__atomic_load_n(&holder_->thread, __ATOMIC_RELAXED) != this_thread()) {
  if (!mine_) return;
  pthread_mutex_lock(&holder_->mutex);
  __atomic_store_n(&holder_->thread, this_thread(), __ATOMIC_RELAXED);
}

Turn::~Turn() {
  // In a child that was forked within the launch nobody holds anything.
  if (!mine_ || __atomic_load_n(&holder_->thread, __ATOMIC_RELAXED) != this_thread()) return;
  __atomic_store_n(&holder_->thread, nullptr, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&holder_->mutex);
}

bool prepare_call(Program& program, const CallRule& rule, CallBase& call, const Arguments& arguments,
                  bool outputs_given) {
  if (!rule.check(call, arguments, outputs_given) || !program.load()) return false;
  if (call.doubtful && program.asks() && !arguments.are_known()) return raise_doubt();
  return check_ordinal(call.place, kHostDevices) && refuse_stream(arguments) &&
         rule.allocate(call, outputs_given);
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
