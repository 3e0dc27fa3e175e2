// Memory of the host for what is large: the CPU backend's device memory, and what lies below a
// device with memory of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "kernels/device/backend.h"

namespace ooc {

// Anonymous pages, in huge ones where the buffer holds any: random reads of rows are up to twice as
// fast. The kernel hands pages out zeroed, on first touch. BudgetError where there is no memory,
// naming `owner`.
std::unique_ptr<DeviceBuffer> make_host_buffer(std::size_t bytes, std::string_view owner);

// Gives the pages that lie wholly in this part of such a buffer back to the kernel; what they held
// is lost. They come back as zeros when they are touched again.
void drop_pages(std::span<std::byte> pages);
// Of a part that nobody touches: no huge page of what lies beside it reaches into it.
void leave_empty(std::span<std::byte> part);

}  // namespace ooc
