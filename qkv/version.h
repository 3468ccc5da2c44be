// The version of qkv: the one place that says it. CMake reads the three numbers from here.
#pragma once

#define QKV_VERSION_MAJOR 0
#define QKV_VERSION_MINOR 1
#define QKV_VERSION_PATCH 0

#define QKV_TEXT_OF(x) #x
#define QKV_JOIN_VERSION(major, minor, patch) QKV_TEXT_OF(major) "." QKV_TEXT_OF(minor) "." QKV_TEXT_OF(patch)
/// "MAJOR.MINOR.PATCH" of the headers a program is compiled with.
#define QKV_VERSION QKV_JOIN_VERSION(QKV_VERSION_MAJOR, QKV_VERSION_MINOR, QKV_VERSION_PATCH)
