// The exceptions qkv throws at its boundaries; besides them, std::bad_alloc when there is no memory.
#pragma once

#include <stdexcept>
#include <string>

namespace qkv {

/// Every error qkv reports. what() is one line: what is wrong, where, what to do.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a program says when memory is used up.
inline constexpr const char* kOutOfMemory = "out of memory; use a smaller input, batch or model";

/// Tensors whose shapes or dtypes do not fit the operation named in the message.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A file that is missing, unreadable, unwritable, truncated or not what it should be.
class IoError : public Error {
 public:
  using Error::Error;
};

/// A setting that makes no sense or names something that does not exist (exit code 2).
class ConfigError : public Error {
 public:
  using Error::Error;
};

}  // namespace qkv
