# The Python package carries what `fabricbench build` needs to build against another MPI, without internet: these sources
# without their tests, and the JSON header.
if(SKBUILD)
  set(_sources fabricbench/source)
  install(FILES CMakeLists.txt pyproject.toml LICENSE DESTINATION ${_sources})
  install(DIRECTORY cmake DESTINATION ${_sources})
  install(DIRECTORY native DESTINATION ${_sources} PATTERN tests EXCLUDE)
  install(DIRECTORY ${NLOHMANN_JSON_INCLUDE_DIR}/nlohmann DESTINATION ${_sources}/include)
  file(GLOB _license ${NLOHMANN_JSON_INCLUDE_DIR}/../../nlohmann_json-*.dist-info/licenses/LICENSE*
       /usr/share/doc/nlohmann-json3-dev/copyright)
  if(_license)
    list(GET _license 0 _license)
    install(FILES ${_license} DESTINATION ${_sources}/include/nlohmann RENAME LICENSE)
  endif()
endif()
