// What a job has left as its output, on its node.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/socket.hpp"

namespace fabricbench::farm {

class OutputFile {
 public:
  /// Never waits, whatever a job has left under that name. Throws Failure where it is no regular file that can be read.
  explicit OutputFile(std::string path);

  std::uint64_t bytes() const { return bytes_; }
  /// Read all of it, once; its digest. `kept` takes the bytes, unless it is null; `meanwhile` is called now and then.
  /// Throws Failure.
  std::uint64_t read(std::string* kept, const std::function<void()>& meanwhile) const;

 private:
  std::string path_;
  Descriptor file_;
  std::uint64_t bytes_ = 0;
};

}  // namespace fabricbench::farm
