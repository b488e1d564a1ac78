// The process's memory as a whole.
#pragma once

namespace holdfast::server {

/// Gives back what starting needed and serving does not: free pages of the heap, and the mappings of code and
/// constants, of which those that serving uses come back from the page cache as they are touched.
void give_back_after_start();

}  // namespace holdfast::server
