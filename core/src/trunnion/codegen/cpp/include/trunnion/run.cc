#include <trunnion/run.hpp>

namespace trunnion {

static bool give_outputs(const CallRule& rule, CallBase& call, TVMFFIAny* result) {
  auto* views =
      static_cast<TVMFFIAny*>(__builtin_alloca(sizeof(TVMFFIAny) * static_cast<size_t>(rule.outputs + 1)));
  rule.outputs_of(call, views);
  if (rule.outputs > 1) return give_array(views, rule.outputs, result);
  give_nothing(result);
  if (rule.outputs == 1) {
    *result = views[0];
    TVMFFIObjectIncRef(result->v_obj);
  }
  return true;
}

// Launch, and see to the memory that the call allocated: its workspaces, and its outputs if they are its own.
static bool fire_call(const Program& program, const CallRule& rule, CallBase& call, bool own_outputs) {
  const bool fired = rule.fire(call);
  return settle(program, rule, call, rule.outputs != 0 && own_outputs, fired);
}

int run_call(Program& program, const CallRule& rule, const TVMFFIAny* given, int32_t count,
             bool outputs_given, TVMFFIAny* result) {
  Arguments arguments(given, count);
  if (!arguments.expect(rule.names, rule.inputs + (outputs_given ? rule.outputs : 0))) return -1;
  const Flight flight(program);
  if (!flight) return -1;
  const Begun begun(rule, program, TRUNNION_CALL_MEMORY(rule));
  CallBase& call = *begun;
  if (!prepare_call(program, rule, call, arguments, outputs_given)) return -1;
  Entered entered;
  if (!enter_call(program, rule, call, entered) || !rule.prepare(call)) return -1;
  if (!fire_call(program, rule, call, !outputs_given)) return -1;
  if (outputs_given) return give_nothing(result), 0;
  return give_outputs(rule, call, result) ? 0 : -1;
}

bool Bound::launch() const {
  const Flight flight(*program);
  if (!flight) return false;
  const Turn turn(turns);
  Entered entered;
  return enter_call(*program, *rule, *call, entered) && fire_call(*program, *rule, *call, own_outputs);
}

int Bound::run(void* self, const TVMFFIAny* given, int32_t count, TVMFFIAny* result) {
  Bound& bound = *static_cast<Bound*>(self);
  if (__builtin_expect(count != 0, 0)) return offer_bound(bound, given, count, result);
  if (!bound.launch()) return -1;
  return give_nothing(result), 0;
}

void Bound::destroy(void* self) {
  Bound* bound = static_cast<Bound*>(self);
  bound->rule->end(*bound->call);
  bound->turns.close();
  Program& program = *bound->program;
  std::free(self);
  leave_program(program);
}

static Bound* new_bound(Program& program, const CallRule& rule, bool own_outputs) {
  constexpr size_t kRoom =
      (sizeof(Bound) + kCallAlignment - 1) & ~(kCallAlignment - 1);  // a call follows behind
  void* memory = nullptr;
  if (posix_memalign(&memory, kCallAlignment, kRoom + rule.size) != 0) {
    raise_no_bound_memory();
    return nullptr;
  }
  CallBase* call = rule.begin(static_cast<unsigned char*>(memory) + kRoom, program);
  program.hold();
  Bound* bound = new (memory) Bound{&program, &rule, call, own_outputs, {}, {}};
  if (bound->turns.open()) return bound;
  Bound::destroy(bound);
  return nullptr;
}

int bind_call(Program& program, const CallRule& rule, const TVMFFIAny* given, int32_t count,
              bool outputs_given, TVMFFIAny* result) {
  Arguments arguments(given, count);
  if (!arguments.expect(rule.names, rule.inputs + (outputs_given ? rule.outputs : 0))) return -1;
  const Flight flight(program);
  if (!flight) return -1;
  Bound* bound = new_bound(program, rule, !outputs_given);
  if (bound == nullptr) return -1;
  Held function;
  if (TVMFFIFunctionCreate(bound, Bound::run, Bound::destroy, function.out()) != 0) {
    return Bound::destroy(bound), -1;
  }
  Entered entered;
  CallBase& call = *bound->call;
  if (!prepare_call(program, rule, call, arguments, outputs_given)) return -1;
  if (!enter_call(program, rule, call, entered) || !rule.prepare(call)) return -1;
  auto* views =
      static_cast<TVMFFIAny*>(__builtin_alloca(sizeof(TVMFFIAny) * static_cast<size_t>(rule.outputs + 1)));
  views[0] = function.view(kTVMFFIFunction);
  if (!outputs_given) rule.outputs_of(call, views + 1);
  return give_array(views, outputs_given ? 1 : rule.outputs + 1, result) ? 0 : -1;
}

int load(Program& program, TVMFFIAny* result) {
  const Flight flight(program);
  if (!flight || !program.load()) return -1;
  return give_nothing(result), 0;
}

int preload(Program& program, const TVMFFIAny* given, int32_t count, TVMFFIAny* result) {
  constexpr Name kDevice{"device", 6};
  if (count != 1) return raise_count(count, &kDevice, 1), -1;
  if (given[0].type_index != kTVMFFIInt) return raise_no_ordinal(given[0], "an ordinal"), -1;
  const Flight flight(program);
  if (!flight || !program.load() || !prepare_device(program, given[0].v_int64)) return -1;
  return give_nothing(result), 0;
}

int close(Program& program, TVMFFIAny* result) {
  if (!program.close()) return -1;
  return give_nothing(result), 0;
}

}  // namespace trunnion
