#pragma once
// A run of a program over durable objects, and the recovery of what a crash has left of them: by the engine, as a program that opens
// the pool would see it.

#include <string>

#include "program.hpp"
#include "recovery.hpp"

namespace stillpoint::explorer {

/// Opens the pool of the stage that is set, works, and stops. What went wrong, or "".
[[nodiscard]] std::string run_objects(const ProgramPlan& plan, const std::string& path);

/// Recovers an image in a process of its own and has the parts of all objects told. The image itself is not changed.
void recover_objects(const ProgramPlan& plan, const sim::CrashImage& image, Recovered& recovered);

}  // namespace stillpoint::explorer
