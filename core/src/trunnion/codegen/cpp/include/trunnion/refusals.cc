// Written by trunnion.codegen.cpp.refusals from the table of refusals: change the table, not this.
#include <trunnion/refusals.hpp>

// clang-format off

namespace trunnion {

bool raise_count(int64_t given, const Name* wanted, int32_t wanted_count) {
  return refuse({"count", "TypeError", Form::kArgument, {"", "{0} arguments", "{1}"}}, {Field::number(given), Field::names(wanted, wanted_count)});
}
bool raise_no_tensor(const Name& argument, const Words& kind) {
  return refuse({"no-tensor", "TypeError", Form::kArgument, {"{0}", "{1}", "a tensor"}}, {Field::raw(argument), Field::raw(kind)}, argument.place);
}
bool raise_no_tensor_but_none(const Name& argument) {
  return refuse({"no-tensor-but-none", "TypeError", Form::kArgument, {"{0}", "NoneType", "a tensor; a parameter that is declared nullable=True takes None"}}, {Field::raw(argument)}, argument.place);
}
bool raise_dtype(const Name& argument, const Words& got, const Words& expected) {
  return refuse({"dtype", "TypeError", Form::kArgument, {"{0}", "a tensor of {1}", "one of {2}"}}, {Field::raw(argument), Field::raw(got), Field::raw(expected)}, argument.place);
}
bool raise_rank(const Name& argument, int64_t got, int64_t expected, const int64_t* shape, int32_t shape_count) {
  return refuse({"rank", "ValueError", Form::kArgument, {"{0}", "{1} dimensions, shape {3}", "{2} dimensions"}}, {Field::raw(argument), Field::number(got), Field::number(expected), Field::dims(shape, shape_count)}, argument.place);
}
bool raise_long_rank(const Name& argument, int64_t got, int64_t expected) {
  return refuse({"long-rank", "ValueError", Form::kArgument, {"{0}", "{1} dimensions", "{2} dimensions"}}, {Field::raw(argument), Field::number(got), Field::number(expected)}, argument.place);
}
bool raise_not_on_cuda(const Name& argument, const Words& device) {
  return refuse({"not-on-cuda", "ValueError", Form::kArgument, {"{0}", "a tensor on {1}", "a tensor on a CUDA device"}}, {Field::raw(argument), Field::raw(device)}, argument.place);
}
bool raise_not_on_cuda_but_cpu(const Name& argument, const Words& device) {
  return refuse({"not-on-cuda-but-cpu", "ValueError", Form::kArgument, {"{0}", "a tensor on {1}", "a tensor on a CUDA device; call .to('cuda')"}}, {Field::raw(argument), Field::raw(device)}, argument.place);
}
bool raise_not_on_cpu(const Name& argument, const Words& device) {
  return refuse({"not-on-cpu", "ValueError", Form::kArgument, {"{0}", "a tensor on {1}", "a tensor on the CPU"}}, {Field::raw(argument), Field::raw(device)}, argument.place);
}
bool raise_not_on_cpu_but_cuda(const Name& argument, const Words& device) {
  return refuse({"not-on-cpu-but-cuda", "ValueError", Form::kArgument, {"{0}", "a tensor on {1}", "a tensor on the CPU; call .cpu()"}}, {Field::raw(argument), Field::raw(device)}, argument.place);
}
bool raise_other_device(const Name& argument, int64_t device, int64_t first, const Name& owner) {
  return refuse({"other-device", "ValueError", Form::kArgument, {"{0}", "a tensor on device {1}", "device {2}, where {3} lies"}}, {Field::raw(argument), Field::number(device), Field::number(first), Field::name(owner)}, argument.place);
}
bool raise_layout(const Name& argument, const int64_t* strides, int32_t strides_count, const int64_t* shape, int32_t shape_count) {
  return refuse({"layout", "ValueError", Form::kArgument, {"{0}", "strides {1} for shape {2}", "a contiguous row-major tensor; call .contiguous()"}}, {Field::raw(argument), Field::dims(strides, strides_count), Field::dims(shape, shape_count)}, argument.place);
}
bool raise_null_tensor(const Name& argument) {
  return refuse({"null-tensor", "TypeError", Form::kArgument, {"{0}", "a tensor with a null address", "a tensor in memory"}}, {Field::raw(argument)}, argument.place);
}
bool raise_alignment(const Name& argument, uint64_t address, int64_t alignment) {
  return refuse({"alignment", "ValueError", Form::kArgument, {"{0}", "address {1}", "a multiple of {2} bytes"}}, {Field::raw(argument), Field::address(address), Field::number(alignment)}, argument.place);
}
bool raise_no_integer(const Name& argument, const Words& kind, int64_t low, const Number& high) {
  return refuse({"no-integer", "TypeError", Form::kArgument, {"{0}", "{1}", "an integer, {2} to {3}"}}, {Field::raw(argument), Field::raw(kind), Field::number(low), Field::number(high)}, argument.place);
}
bool raise_tensor_for_integer(const Name& argument, const Words& kind, int64_t low, const Number& high) {
  return refuse({"tensor-for-integer", "TypeError", Form::kArgument, {"{0}", "{1}", "an integer, {2} to {3}; pass the tensor's .item(), which waits for its device"}}, {Field::raw(argument), Field::raw(kind), Field::number(low), Field::number(high)}, argument.place);
}
bool raise_integer_range(const Name& argument, const Words& got, int64_t low, const Number& high) {
  return refuse({"integer-range", "ValueError", Form::kArgument, {"{0}", "{1}", "an integer, {2} to {3}"}}, {Field::raw(argument), Field::raw(got), Field::number(low), Field::number(high)}, argument.place);
}
bool raise_no_real(const Name& argument, const Words& kind, const Words& dtype) {
  return refuse({"no-real", "TypeError", Form::kArgument, {"{0}", "{1}", "a number that fits {2}"}}, {Field::raw(argument), Field::raw(kind), Field::raw(dtype)}, argument.place);
}
bool raise_tensor_for_real(const Name& argument, const Words& kind, const Words& dtype) {
  return refuse({"tensor-for-real", "TypeError", Form::kArgument, {"{0}", "{1}", "a number that fits {2}; pass the tensor's .item(), which waits for its device"}}, {Field::raw(argument), Field::raw(kind), Field::raw(dtype)}, argument.place);
}
bool raise_real_range(const Name& argument, const Words& got, const Words& dtype) {
  return refuse({"real-range", "ValueError", Form::kArgument, {"{0}", "{1}", "a number that fits {2}"}}, {Field::raw(argument), Field::raw(got), Field::raw(dtype)}, argument.place);
}
bool raise_no_boolean(const Name& argument, const Words& kind) {
  return refuse({"no-boolean", "TypeError", Form::kArgument, {"{0}", "{1}", "True or False"}}, {Field::raw(argument), Field::raw(kind)}, argument.place);
}
bool raise_tensor_for_boolean(const Name& argument, const Words& kind) {
  return refuse({"tensor-for-boolean", "TypeError", Form::kArgument, {"{0}", "{1}", "True or False; pass the tensor's .item(), which waits for its device"}}, {Field::raw(argument), Field::raw(kind)}, argument.place);
}
bool raise_no_address(const Name& argument) {
  return refuse({"no-address", "TypeError", Form::kArgument, {"{0}", "None", "an address; the pointer is not nullable"}}, {Field::raw(argument)}, argument.place);
}
bool raise_tensor_for_address(const Name& argument, const Words& kind) {
  return refuse({"tensor-for-address", "TypeError", Form::kArgument, {"{0}", "{1}", "an address: pass the tensor's .data_ptr()"}}, {Field::raw(argument), Field::raw(kind)}, argument.place);
}
bool raise_null_address(const Name& argument) {
  return refuse({"null-address", "ValueError", Form::kArgument, {"{0}", "the address 0", "an address that is not null"}}, {Field::raw(argument)}, argument.place);
}
bool raise_no_buffer(const Name& argument, const Words& kind, int64_t nbytes) {
  return refuse({"no-buffer", "TypeError", Form::kArgument, {"{0}", "{1}", "an object with a buffer of {2} bytes"}}, {Field::raw(argument), Field::raw(kind), Field::number(nbytes)}, argument.place);
}
bool raise_buffer_size(const Name& argument, int64_t got, int64_t nbytes) {
  return refuse({"buffer-size", "ValueError", Form::kArgument, {"{0}", "{1} bytes", "{2}"}}, {Field::raw(argument), Field::number(got), Field::number(nbytes)}, argument.place);
}
bool raise_unbound(const Name& symbol, const Name* places, int32_t places_count) {
  return refuse({"unbound", "ValueError", Form::kMessage, {"symbol {0} has no value: no input has it as a bare dimension, stride or scalar (it stands here: {1}); add a parameter that does"}}, {Field::name(symbol), Field::places(places, places_count)});
}
bool raise_symbol(const Name& argument, const Words& place, const Number& got, const Words& allowed) {
  return refuse({"symbol", "ValueError", Form::kArgument, {"{0}", "{2} for {1}", "{3}"}}, {Field::raw(argument), Field::raw(place), Field::number(got), Field::raw(allowed)}, argument.place);
}
bool raise_unequal(const Name& argument, const Words& word, int64_t axis, int64_t got, int64_t expected, const Name& author) {
  return refuse({"unequal", "ValueError", Form::kArgument, {"{0}", "{1} {3} along dimension {2}", "{4}{5}"}}, {Field::raw(argument), Field::raw(word), Field::number(axis), Field::number(got), Field::number(expected), Field::author(author)}, argument.place);
}
bool raise_value(const Name& argument, const Number& got, int64_t expected, const Name& author) {
  return refuse({"value", "ValueError", Form::kArgument, {"{0}", "{1}", "{2}{3}"}}, {Field::raw(argument), Field::number(got), Field::number(expected), Field::author(author)}, argument.place);
}
bool raise_condition(const Words& message) {
  return refuse({"condition", "ValueError", Form::kArgument, {"", "a call that fails the program's check", "{0}"}}, {Field::raw(message)});
}
bool raise_unfit(const Words& value, const Words& text) {
  return refuse({"unfit", "ValueError", Form::kMessage, {"the value {0} of {1} does not fit 64 signed bits"}}, {Field::raw(value), Field::raw(text)});
}
bool raise_not_finite(const Words& value, const Words& text) {
  return refuse({"not-finite", "ValueError", Form::kMessage, {"the value {0} of {1} is not finite"}}, {Field::raw(value), Field::raw(text)});
}
bool raise_float_unfit(const Words& value, const Words& text, const Words& type) {
  return refuse({"float-unfit", "ValueError", Form::kMessage, {"the value {0} of {1} does not fit {2}"}}, {Field::raw(value), Field::raw(text), Field::raw(type)});
}
bool raise_division(const Words& text) {
  return refuse({"division", "ValueError", Form::kMessage, {"division by zero in {0}"}}, {Field::raw(text)});
}
bool raise_shift(int64_t count, const Words& text) {
  return refuse({"shift", "ValueError", Form::kMessage, {"a shift by {0} in {1}, expected 0 to 63"}}, {Field::number(count), Field::raw(text)});
}
bool raise_cast(int64_t value, int64_t low, const Number& high, const Words& type, const Words& text) {
  return refuse({"cast", "ValueError", Form::kMessage, {"the value {0} of {4} does not fit {3} ({1} to {2})"}}, {Field::number(value), Field::number(low), Field::number(high), Field::raw(type), Field::raw(text)});
}
bool raise_grid(const Name& kernel, int64_t axis, int64_t got, int64_t limit) {
  return refuse({"grid", "ValueError", Form::kArgument, {"", "a grid of {2} blocks along {1} for kernel {0}", "0 to {3}"}}, {Field::name(kernel), Field::axis(axis), Field::number(got), Field::number(limit)});
}
bool raise_cluster(const Name& kernel, int64_t axis, int64_t got, int64_t cluster) {
  return refuse({"cluster", "ValueError", Form::kArgument, {"", "a grid of {2} blocks along {1} for kernel {0}", "a multiple of the cluster's {3}"}}, {Field::name(kernel), Field::axis(axis), Field::number(got), Field::number(cluster)});
}
bool raise_cluster_extent(const Name& kernel, int64_t axis, int64_t got, int64_t limit) {
  return refuse({"cluster-extent", "ValueError", Form::kArgument, {"", "a cluster of {2} blocks along {1} for kernel {0}", "1 to {3}"}}, {Field::name(kernel), Field::axis(axis), Field::number(got), Field::number(limit)});
}
bool raise_wide_cluster(const Name& kernel, int64_t got, int64_t limit) {
  return refuse({"wide-cluster", "ValueError", Form::kArgument, {"", "a cluster of {1} blocks for kernel {0}", "at most {2}"}}, {Field::name(kernel), Field::number(got), Field::number(limit)});
}
bool raise_block(const Name& kernel, int64_t axis, int64_t got, int64_t limit) {
  return refuse({"block", "ValueError", Form::kArgument, {"", "{2} threads along {1} for kernel {0}", "1 to {3}"}}, {Field::name(kernel), Field::axis(axis), Field::number(got), Field::number(limit)});
}
bool raise_wide_block(const Name& kernel, int64_t got, int64_t limit) {
  return refuse({"wide-block", "ValueError", Form::kArgument, {"", "a block of {1} threads for kernel {0}", "at most {2}"}}, {Field::name(kernel), Field::number(got), Field::number(limit)});
}
bool raise_smem_size(const Name& kernel, int64_t got, int64_t limit) {
  return refuse({"smem-size", "ValueError", Form::kArgument, {"", "{1} bytes of shared memory for kernel {0}", "0 to {2}"}}, {Field::name(kernel), Field::number(got), Field::number(limit)});
}
bool raise_view(const Name& argument, int64_t axis, int64_t got) {
  return refuse({"view", "ValueError", Form::kArgument, {"{0}", "extent {2} along dimension {1}", "-2147483648 to 2147483647: a view passes it as int32"}}, {Field::raw(argument), Field::number(axis), Field::number(got)}, argument.place);
}
bool raise_offset(const Name& argument, int64_t got, int64_t limit) {
  return refuse({"offset", "ValueError", Form::kArgument, {"{0}", "an address moved by {1} elements", "0 to the {2} elements that it spans"}}, {Field::raw(argument), Field::number(got), Field::number(limit)}, argument.place);
}
bool raise_absent(const Name& argument, const Words& reader) {
  return refuse({"absent", "TypeError", Form::kArgument, {"{0}", "None", "a tensor: {1} reads it in this call"}}, {Field::raw(argument), Field::raw(reader)}, argument.place);
}
bool raise_negative(const Name& argument, int64_t axis, int64_t got) {
  return refuse({"negative", "ValueError", Form::kArgument, {"{0}", "extent {2} along dimension {1}", "at least 0"}}, {Field::raw(argument), Field::number(axis), Field::number(got)}, argument.place);
}
bool raise_size(const Name& argument) {
  return refuse({"size", "ValueError", Form::kArgument, {"{0}", "arguments that ask for 2**63 bytes of it or more", "fewer than 2**63"}}, {Field::raw(argument)}, argument.place);
}
bool raise_destination(const Name& argument, const int64_t* strides, int32_t strides_count, const int64_t* shape, int32_t shape_count) {
  return refuse({"destination", "ValueError", Form::kArgument, {"{0}", "strides {1} for shape {2}", "a contiguous row-major tensor to write into: allocate one, and copy from it"}}, {Field::raw(argument), Field::dims(strides, strides_count), Field::dims(shape, shape_count)}, argument.place);
}
bool raise_output_device(const Name& argument, const Words& device, int64_t ordinal) {
  return refuse({"output-device", "ValueError", Form::kArgument, {"{0}", "a tensor on {1}", "CUDA device {2}"}}, {Field::raw(argument), Field::raw(device), Field::number(ordinal)}, argument.place);
}
bool raise_output_on_cpu(const Name& argument, const Words& device) {
  return refuse({"output-on-cpu", "ValueError", Form::kArgument, {"{0}", "a tensor on {1}", "the CPU"}}, {Field::raw(argument), Field::raw(device)}, argument.place);
}
bool raise_overlap(const Name& argument, const Name& other) {
  return refuse({"overlap", "ValueError", Form::kArgument, {"{0}", "memory that {1} also lies in", "memory of its own"}}, {Field::raw(argument), Field::name(other)}, argument.place);
}
bool raise_no_allocator() {
  return refuse({"no-allocator", "RuntimeError", Form::kRequirement, {"an allocator for outputs and workspaces", "none: no tensor library took part in the call", "set one (TVMFFIEnvSetDLPackManagedTensorAllocator); outputs alone main_out takes as given"}});
}
bool raise_map_outside(const Name& memory, int64_t start, const Words& end, int64_t limit) {
  return refuse({"map-outside", "ValueError", Form::kPlaced, {"tensor map over {0}", "the map lies within its memory (got: bytes {1} to {2} of {3})"}}, {Field::name(memory), Field::number(start), Field::raw(end), Field::number(limit)});
}
bool raise_window_outside(const Name& argument, const Words& nbytes, int64_t offset, int64_t limit) {
  return refuse({"window-outside", "ValueError", Form::kArgument, {"{0}", "a window of {1} bytes from byte {2}", "one that lies within its {3} bytes"}}, {Field::raw(argument), Field::raw(nbytes), Field::number(offset), Field::number(limit)}, argument.place);
}
bool raise_long_window(int64_t nbytes, const Name& memory, int64_t device, int64_t most) {
  return refuse({"long-window", "RuntimeError", Form::kRequirement, {"an access-policy window of {0} bytes over {1}", "device {2}, which allows {3}", "leave nbytes out for as much as the device allows"}}, {Field::number(nbytes), Field::name(memory), Field::number(device), Field::number(most)});
}
bool raise_no_device() {
  return refuse({"no-device", "RuntimeError", Form::kRequirement, {"a device", "a call with no tensor", "pass device="}});
}
bool raise_device_differs(int64_t given, int64_t device) {
  return refuse({"device-differs", "ValueError", Form::kArgument, {"device", "{0}", "{1}, where the tensors lie"}}, {Field::number(given), Field::number(device)});
}
bool raise_stream_device(int64_t found, int64_t device) {
  return refuse({"stream-device", "ValueError", Form::kArgument, {"stream", "a stream of device {0}", "one of device {1}, where the tensors lie"}}, {Field::number(found), Field::number(device)});
}
bool raise_stream_context(int64_t device) {
  return refuse({"stream-context", "ValueError", Form::kArgument, {"stream", "a stream of a context that has module variables of its own", "one of the primary context of device {0}, or of a green one: there the program's variables are"}}, {Field::number(device)});
}
bool raise_stream_on_cpu(const Words& kind) {
  return refuse({"stream-on-cpu", "ValueError", Form::kArgument, {"stream", "{0}", "None: the CPU has no streams"}}, {Field::raw(kind)});
}
bool raise_other_stream() {
  return refuse({"other-stream", "ValueError", Form::kArgument, {"stream", "another stream than the current one, for a call that allocates", "the current stream"}});
}
bool raise_other_stream_for_outputs() {
  return refuse({"other-stream-for-outputs", "ValueError", Form::kArgument, {"stream", "another stream than the current one, for a call that allocates", "the current stream, or destinations (main_out)"}});
}
bool raise_word(const Name& argument, const Words& kind, const Words& expected) {
  return refuse({"word", "TypeError", Form::kArgument, {"{0}", "{1}", "{2}"}}, {Field::raw(argument), Field::raw(kind), Field::raw(expected)}, argument.place);
}
bool raise_unprepared(int64_t device) {
  return refuse({"unprepared", "RuntimeError", Form::kMessage, {"the program was not prepared for device {0}, and its stream is being captured: call preload({0}) before the capture"}}, {Field::number(device)});
}
bool raise_window_in_capture() {
  return refuse({"window-in-capture", "RuntimeError", Form::kMessage, {"a window with policy 'stream' cannot be captured, because the call waits for its kernel; use policy 'launch'"}});
}
bool raise_attribute_version(int64_t needed, const Words& attribute, int64_t version) {
  return refuse({"attribute-version", "RuntimeError", Form::kRequirement, {"CUDA {0} for the launch attribute {1}", "a driver for CUDA {2}", "update the driver, or leave the attribute out"}}, {Field::version(needed), Field::raw(attribute), Field::version(version)});
}
bool raise_attribute_capability(int64_t major, int64_t minor, const Words& attribute, int64_t device, int64_t has_major, int64_t has_minor) {
  return refuse({"attribute-capability", "RuntimeError", Form::kRequirement, {"compute capability {0}.{1} for the launch attribute {2}", "device {3}, of compute capability {4}.{5}", "launch on a device that has it, or leave the attribute out"}}, {Field::number(major), Field::number(minor), Field::raw(attribute), Field::number(device), Field::number(has_major), Field::number(has_minor)});
}
bool raise_dynamic_smem(int64_t nbytes, const Name& kernel, int64_t device, int64_t most) {
  return refuse({"dynamic-smem", "RuntimeError", Form::kRequirement, {"{0} bytes of dynamic shared memory for kernel {1}", "device {2}, which allows a block {3} bytes, static ones included", ""}}, {Field::number(nbytes), Field::name(kernel), Field::number(device), Field::number(most)});
}
bool raise_fact(int64_t least, const Words& name, int64_t value, int64_t device) {
  return refuse({"fact", "RuntimeError", Form::kRequirement, {"at least {0} as {1}", "{2}, as device {3} answers", ""}}, {Field::number(least), Field::raw(name), Field::number(value), Field::number(device)});
}
bool raise_no_driver(const Words& said) {
  return refuse({"no-driver", "RuntimeError", Form::kRequirement, {"a CUDA driver (libcuda.so.1)", "none: {0}", "install the NVIDIA driver, or simulate: trunnion.sim.start()"}}, {Field::raw(said)});
}
bool raise_old_driver(int64_t needed, const Words& function, int64_t version) {
  return refuse({"old-driver", "RuntimeError", Form::kRequirement, {"a driver for CUDA {0} or later, with {1}", "one for CUDA {2}", "update the driver"}}, {Field::version(needed), Field::raw(function), Field::version(version)});
}
bool raise_other_cpu(const Words& architecture) {
  return refuse({"other-cpu", "RuntimeError", Form::kRequirement, {"a CPU that runs code for {0}", "one that lacks some of its instructions", "compile it for target='cpu'"}}, {Field::raw(architecture)});
}
bool raise_no_scratch(const Number& nbytes) {
  return refuse({"no-scratch", "RuntimeError", Form::kRequirement, {"{0} bytes of scratch memory for a block", "none from the system", "lower the launch's dynamic_smem_bytes"}}, {Field::number(nbytes)});
}
bool raise_closed() {
  return refuse({"closed", "RuntimeError", Form::kMessage, {"the program was closed"}});
}
bool raise_forked() {
  return refuse({"forked", "RuntimeError", Form::kMessage, {"the process forked after the program was loaded, and CUDA does not survive a fork: start processes by spawn, or fork before CUDA is first used"}});
}
bool raise_close_within() {
  return refuse({"close-within", "RuntimeError", Form::kMessage, {"a program cannot be closed from within its own launch; close it after the call"}});
}
bool raise_loading_elsewhere() {
  return refuse({"loading-elsewhere", "RuntimeError", Form::kMessage, {"the program is being loaded, or prepared for a device, by another thread, for so long that it may wait for this one; preload() it before several threads call"}});
}
bool raise_loading_nested() {
  return refuse({"loading-nested", "RuntimeError", Form::kMessage, {"the program is being loaded, or prepared for a device, further up in this thread, which a signal's handler or a finalizer has interrupted; preload() it before, or leave this call to later"}});
}
bool raise_no_image() {
  return refuse({"no-image", "RuntimeError", Form::kMessage, {"the launcher has no image of its own; hand it one: load(image, names)"}});
}
bool raise_second_image() {
  return refuse({"second-image", "RuntimeError", Form::kMessage, {"the launcher has its image already"}});
}
bool raise_not_loaded() {
  return refuse({"not-loaded", "RuntimeError", Form::kMessage, {"the program was not loaded yet"}});
}
bool raise_kernel_names(const Number& got, int64_t count) {
  return refuse({"kernel-names", "ValueError", Form::kArgument, {"names", "{0} bytes", "{1} kernels' exact names, each with a zero byte behind it"}}, {Field::number(got), Field::number(count)});
}
bool raise_image_names(const Number& got, int64_t count, int64_t variables) {
  return refuse({"image-names", "ValueError", Form::kArgument, {"names", "{0} bytes", "{1} kernels' exact names, then {2} variables', each with a zero byte behind it"}}, {Field::number(got), Field::number(count), Field::number(variables)});
}
bool raise_empty_image() {
  return refuse({"empty-image", "ValueError", Form::kArgument, {"image", "0 bytes", "a cubin, or PTX"}});
}
bool raise_no_own_memory() {
  return refuse({"no-own-memory", "MemoryError", Form::kMessage, {"the launcher's own memory could not be allocated"}});
}
bool raise_no_bound_memory() {
  return refuse({"no-bound-memory", "MemoryError", Form::kMessage, {"no memory for a bound launch"}});
}

}  // namespace trunnion
