# A folder under src/ is one library, and the arrows between folders are enforced by the compiler.
#
# Each library gets an include root of its own in the build tree, with links to the headers of its folder and to no
# others. A header of another folder is found only if that folder's library is named in LINKS, so an include
# against the arrows of ARCHITECTURE.md does not compile.

# The targets `unit_tests` and `thread_tests` build the tests with these labels and nothing else.
add_custom_target(unit_tests)
add_custom_target(thread_tests)

# trainyard_folder(NAME [THREADS] [DIR path/below/src] [LINKS folder...] [USES third-party-target...] [TESTS_LINK folder...])
# Sources are all *.cc of the folder but tests (*_test.cc), which become the executable NAME_test; that one links what
# TESTS_LINK names as well. THREADS: the folder's code or its tests start threads, so the tests also run under thread checks.
function(trainyard_folder name)
  cmake_parse_arguments(F "THREADS" "DIR" "LINKS;USES;TESTS_LINK" ${ARGN})
  if(NOT F_DIR)
    set(F_DIR ${name})
  endif()
  set(here ${PROJECT_SOURCE_DIR}/src/${F_DIR})
  file(GLOB headers CONFIGURE_DEPENDS ${here}/*.h)
  file(GLOB sources CONFIGURE_DEPENDS ${here}/*.cc)
  file(GLOB tests CONFIGURE_DEPENDS ${here}/*_test.cc)
  if(tests)
    list(REMOVE_ITEM sources ${tests})
  endif()

  set(root ${PROJECT_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${root}/${F_DIR})
  foreach(header ${headers})
    get_filename_component(leaf ${header} NAME)
    file(CREATE_LINK ${header} ${root}/${F_DIR}/${leaf} SYMBOLIC)
  endforeach()

  if(sources)
    add_library(${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${name} ${scope} ${root})
  target_link_libraries(${name} ${scope} ${F_LINKS} ${F_USES})

  if(tests)
    trainyard_test(${name}_test SOURCES ${tests} LINKS ${name} ${F_TESTS_LINK})
    if(F_THREADS)
      set_property(TEST ${name}_test APPEND PROPERTY LABELS thread)
      add_dependencies(thread_tests ${name}_test)
    endif()
  endif()
endfunction()

# trainyard_test(NAME [LABEL label] SOURCES ... LINKS ...): one GoogleTest executable, one ctest entry, labeled `unit` by default.
function(trainyard_test name)
  cmake_parse_arguments(T "" "LABEL" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE ${T_LINKS} GTest::gtest GTest::gtest_main)
  # Relative, so that a compiler cache serves every checkout.
  target_compile_definitions(${name} PRIVATE TESTDATA="tests/data")
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(T_LABEL)
    set_tests_properties(${name} PROPERTIES LABELS ${T_LABEL})
  else()
    set_tests_properties(${name} PROPERTIES LABELS unit)
    add_dependencies(unit_tests ${name})
  endif()
endfunction()

# trainyard_embed(NAME FILE...): a library that has the bytes of these files of the project, as they are when it is built.
# With it, #include "NAME.h" and NAME::kPodYaml, a std::string_view, for any/folder/pod.yaml.
function(trainyard_embed name)
  set(root ${PROJECT_BINARY_DIR}/include/${name})
  set(declarations "")
  set(sources "")
  foreach(file ${ARGN})
    get_filename_component(leaf ${file} NAME)
    string(REGEX MATCHALL "[A-Za-z0-9]+" words ${leaf})
    set(constant k)
    foreach(word ${words})
      string(SUBSTRING ${word} 0 1 first)
      string(SUBSTRING ${word} 1 -1 others)
      string(TOUPPER ${first} first)
      string(APPEND constant ${first}${others})
    endforeach()
    string(APPEND declarations "extern const std::string_view ${constant};  // ${file}\n")
    set(source ${PROJECT_BINARY_DIR}/embedded/${name}/${leaf}.cc)
    add_custom_command(
      OUTPUT ${source}
      COMMAND ${CMAKE_COMMAND} -DFILE=${PROJECT_SOURCE_DIR}/${file} -DSOURCE=${source} -DHEADER=${name}.h
              -DCONSTANT=${name}::${constant} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
      DEPENDS ${PROJECT_SOURCE_DIR}/${file} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
      VERBATIM)
    list(APPEND sources ${source})
  endforeach()
  file(CONFIGURE OUTPUT ${root}/${name}.h @ONLY CONTENT
    "#pragma once\n\n#include <string_view>\n\nnamespace @name@ {\n\n@declarations@\n}  // namespace @name@\n")
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${root})
endfunction()
