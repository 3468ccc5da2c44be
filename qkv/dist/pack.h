// Values as bytes for another process of the same program: numbers, texts, lists and tuples of them.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace qkv {

template <class T>
requires std::is_arithmetic_v<T> || std::is_enum_v<T>
void pack(std::string& to, const T& value) { to.append(reinterpret_cast<const char*>(&value), sizeof value); }
template <class T>
requires std::is_arithmetic_v<T> || std::is_enum_v<T>
void unpack(std::string_view& from, T& value) {
  if (from.size() < sizeof value) throw std::length_error("a message of another process ends too early");
  std::memcpy(&value, from.data(), sizeof value);
  from.remove_prefix(sizeof value);
}

inline void pack(std::string& to, const std::string& text) {
  pack(to, text.size());
  to += text;
}
inline void unpack(std::string_view& from, std::string& text) {
  size_t n = 0;
  unpack(from, n);
  if (from.size() < n) throw std::length_error("a message of another process ends too early");
  text = from.substr(0, n);
  from.remove_prefix(n);
}

template <class... T>
void pack(std::string& to, const std::tuple<T...>& values);
template <class... T>
void unpack(std::string_view& from, std::tuple<T...>& values);

template <class T>
void pack(std::string& to, const std::vector<T>& values) {
  pack(to, values.size());
  for (const T& value : values) pack(to, value);
}
template <class T>
void unpack(std::string_view& from, std::vector<T>& values) {
  size_t n = 0;
  unpack(from, n);
  values.clear();
  for (; n > 0; --n) {
    T value{};
    unpack(from, value);
    values.push_back(std::move(value));
  }
}

template <class... T>
void pack(std::string& to, const std::tuple<T...>& values) {
  std::apply([&](const T&... value) { (pack(to, value), ...); }, values);
}
template <class... T>
void unpack(std::string_view& from, std::tuple<T...>& values) {
  std::apply([&](T&... value) { (unpack(from, value), ...); }, values);
}

template <class T>
std::string packed(const T& value) {
  std::string bytes;
  pack(bytes, value);
  return bytes;
}
template <class T>
T unpacked(std::string_view bytes) {
  T value{};
  unpack(bytes, value);
  return value;
}

}  // namespace qkv
