# GoogleTest compiled from the sources that its Debian package brings.
set(gtest_root /usr/src/googletest/googletest)
if(EXISTS ${gtest_root}/src/gtest-all.cc)
  add_library(gtest_main STATIC ${gtest_root}/src/gtest-all.cc ${gtest_root}/src/gtest_main.cc)
  target_include_directories(gtest_main SYSTEM PUBLIC ${gtest_root}/include PRIVATE ${gtest_root})
  add_library(GTest::gtest_main ALIAS gtest_main)
else()
  set(GTest_FOUND FALSE)
endif()
