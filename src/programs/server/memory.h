// Memory management of the whole process.
#pragma once

namespace holdfast::server {

/// Releases memory needed only during startup: free pages of the heap, and the mappings of code and constants. The
/// parts of the latter that are still used return from the page cache when touched.
void release_startup_memory();

}  // namespace holdfast::server
