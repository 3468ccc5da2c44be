// Clocks: processor time, which other work on the machine hardly moves.
#pragma once

namespace qkv {

/// Seconds that this thread has had a processor. In a browser, which has no such clock, seconds that passed.
double thread_seconds();

/// The same for all threads of this process together.
double process_seconds();

}  // namespace qkv
