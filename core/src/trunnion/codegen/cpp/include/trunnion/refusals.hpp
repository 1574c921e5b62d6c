// Written by trunnion.codegen.cpp.refusals from the table of refusals: change the table, not this.
#pragma once

#include <trunnion/errors.hpp>

// clang-format off

namespace trunnion {

bool raise_count(int64_t given, const Name* wanted, int32_t wanted_count);
bool raise_no_tensor(const Name& argument, const Words& kind);
bool raise_no_tensor_but_none(const Name& argument);
bool raise_dtype(const Name& argument, const Words& got, const Words& expected);
bool raise_rank(const Name& argument, int64_t got, int64_t expected, const int64_t* shape, int32_t shape_count);
bool raise_long_rank(const Name& argument, int64_t got, int64_t expected);
bool raise_not_on_cuda(const Name& argument, const Words& device);
bool raise_not_on_cuda_but_cpu(const Name& argument, const Words& device);
bool raise_not_on_cpu(const Name& argument, const Words& device);
bool raise_not_on_cpu_but_cuda(const Name& argument, const Words& device);
bool raise_other_device(const Name& argument, int64_t device, int64_t first, const Name& owner);
bool raise_layout(const Name& argument, const int64_t* strides, int32_t strides_count, const int64_t* shape, int32_t shape_count);
bool raise_null_tensor(const Name& argument);
bool raise_alignment(const Name& argument, uint64_t address, int64_t alignment);
bool raise_no_integer(const Name& argument, const Words& kind, int64_t low, const Number& high);
bool raise_tensor_for_integer(const Name& argument, const Words& kind, int64_t low, const Number& high);
bool raise_integer_range(const Name& argument, const Words& got, int64_t low, const Number& high);
bool raise_no_real(const Name& argument, const Words& kind, const Words& dtype);
bool raise_tensor_for_real(const Name& argument, const Words& kind, const Words& dtype);
bool raise_real_range(const Name& argument, const Words& got, const Words& dtype);
bool raise_no_boolean(const Name& argument, const Words& kind);
bool raise_tensor_for_boolean(const Name& argument, const Words& kind);
bool raise_no_address(const Name& argument);
bool raise_tensor_for_address(const Name& argument, const Words& kind);
bool raise_null_address(const Name& argument);
bool raise_no_buffer(const Name& argument, const Words& kind, int64_t nbytes);
bool raise_buffer_size(const Name& argument, int64_t got, int64_t nbytes);
bool raise_unbound(const Name& symbol, const Name* places, int32_t places_count);
bool raise_symbol(const Name& argument, const Words& place, const Number& got, const Words& allowed);
bool raise_unequal(const Name& argument, const Words& word, int64_t axis, int64_t got, int64_t expected, const Name& author);
bool raise_value(const Name& argument, const Number& got, int64_t expected, const Name& author);
bool raise_condition(const Words& message);
bool raise_unfit(const Words& value, const Words& text);
bool raise_not_finite(const Words& value, const Words& text);
bool raise_float_unfit(const Words& value, const Words& text, const Words& type);
bool raise_division(const Words& text);
bool raise_shift(int64_t count, const Words& text);
bool raise_cast(int64_t value, int64_t low, const Number& high, const Words& type, const Words& text);
bool raise_grid(const Name& kernel, int64_t axis, int64_t got, int64_t limit);
bool raise_cluster(const Name& kernel, int64_t axis, int64_t got, int64_t cluster);
bool raise_cluster_extent(const Name& kernel, int64_t axis, int64_t got, int64_t limit);
bool raise_wide_cluster(const Name& kernel, int64_t got, int64_t limit);
bool raise_block(const Name& kernel, int64_t axis, int64_t got, int64_t limit);
bool raise_wide_block(const Name& kernel, int64_t got, int64_t limit);
bool raise_smem_size(const Name& kernel, int64_t got, int64_t limit);
bool raise_view(const Name& argument, int64_t axis, int64_t got);
bool raise_offset(const Name& argument, int64_t got, int64_t limit);
bool raise_absent(const Name& argument, const Words& reader);
bool raise_negative(const Name& argument, int64_t axis, int64_t got);
bool raise_size(const Name& argument);
bool raise_destination(const Name& argument, const int64_t* strides, int32_t strides_count, const int64_t* shape, int32_t shape_count);
bool raise_output_device(const Name& argument, const Words& device, int64_t ordinal);
bool raise_output_on_cpu(const Name& argument, const Words& device);
bool raise_overlap(const Name& argument, const Name& other);
bool raise_no_allocator();
bool raise_map_outside(const Name& memory, int64_t start, const Words& end, int64_t limit);
bool raise_window_outside(const Name& argument, const Words& nbytes, int64_t offset, int64_t limit);
bool raise_long_window(int64_t nbytes, const Name& memory, int64_t device, int64_t most);
bool raise_no_device();
bool raise_device_differs(int64_t given, int64_t device);
bool raise_stream_device(int64_t found, int64_t device);
bool raise_stream_context(int64_t device);
bool raise_stream_on_cpu(const Words& kind);
bool raise_other_stream();
bool raise_other_stream_for_outputs();
bool raise_word(const Name& argument, const Words& kind, const Words& expected);
bool raise_unprepared(int64_t device);
bool raise_window_in_capture();
bool raise_attribute_version(int64_t needed, const Words& attribute, int64_t version);
bool raise_attribute_capability(int64_t major, int64_t minor, const Words& attribute, int64_t device, int64_t has_major, int64_t has_minor);
bool raise_dynamic_smem(int64_t nbytes, const Name& kernel, int64_t device, int64_t most);
bool raise_fact(int64_t least, const Words& name, int64_t value, int64_t device);
bool raise_no_driver(const Words& said);
bool raise_old_driver(int64_t needed, const Words& function, int64_t version);
bool raise_other_cpu(const Words& architecture);
bool raise_no_scratch(const Number& nbytes);
bool raise_closed();
bool raise_forked();
bool raise_close_within();
bool raise_loading_elsewhere();
bool raise_loading_nested();
bool raise_no_image();
bool raise_second_image();
bool raise_not_loaded();
bool raise_kernel_names(const Number& got, int64_t count);
bool raise_image_names(const Number& got, int64_t count, int64_t variables);
bool raise_empty_image();
bool raise_no_own_memory();
bool raise_no_bound_memory();

}  // namespace trunnion
