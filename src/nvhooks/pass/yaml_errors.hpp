#pragma once
// YAML files of the project read strictly: what is wrong is collected with its place.

#include <string>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLTraits.h"

namespace stillpoint::nvhooks {

/// Appends "path:line:column: error: ..." and the line itself to the string that `context` points to.
inline void append_yaml_error(const llvm::SMDiagnostic &diagnostic, void *context)
{
    llvm::raw_string_ostream out(*static_cast<std::string *>(context));
    diagnostic.print(nullptr, out, /*ShowColors=*/false);
}

/// Reads one document into `value` through its llvm::yaml traits. Errors: every complaint, with line and column.
template <typename Value>
llvm::Error read_yaml(const llvm::MemoryBuffer &file, llvm::StringRef path, Value &value)
{
    std::string complaints;
    llvm::yaml::Input input(llvm::MemoryBufferRef(file.getBuffer(), path), nullptr, &append_yaml_error, &complaints);
    input >> value;
    if (input.error()) {
        if (complaints.empty()) {
            complaints = path.str() + ":1:1: error: not a YAML mapping\n";
        }
        while (!complaints.empty() && complaints.back() == '\n') {
            complaints.pop_back();
        }
        return llvm::createStringError(input.error(), complaints);
    }
    return llvm::Error::success();
}

}  // namespace stillpoint::nvhooks
