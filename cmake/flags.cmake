# One place for the compiler options every qkv target is built with.
if(QKV_FUZZ)
  set(QKV_NOT_FUZZED "-fno-sanitize=fuzzer-no-link")  # for what no fuzzer needs to see the inside of
endif()
function(qkv_compile_options target)
  # No contraction behind our back: a*b+c is fused only where the code does it, so results do not depend on it.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -ffp-contract=off)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-restrict)  # false alarms on std::string operator+ (GCC bug 105651)
    if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
      # False alarms on every row of a constant table that is looked up by a name.
      target_compile_options(${target} PRIVATE -Wno-dangling-reference)
    endif()
  endif()
  if(QKV_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(QKV_HARDENING AND NOT QKV_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    # Some systems' compilers define _FORTIFY_SOURCE themselves.
    target_compile_options(${target} PRIVATE -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
    if(NOT APPLE)
      target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now,-z,noexecstack)
    endif()
  endif()
  if(QKV_SANITIZE)
    # A wrong pointer is the address sanitizer's to find; checked twice, every file takes a third longer to compile.
    target_compile_options(${target} PRIVATE -fsanitize=${QKV_SANITIZE} -fno-sanitize=null,object-size,vptr
                           -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${QKV_SANITIZE})
  endif()
  if(QKV_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()
