# Packs what cpack has staged (bundle.cmake). cpack itself knows no levels of compression. Level 9
# looks back 64 MiB and so finds what programs share, which is most of their bytes.
if(NOT OOC_XZ)
  set(OOC_XZ "xz -T2 -9")
endif()
set(archive ${CPACK_PACKAGE_DIRECTORY}/${CPACK_PACKAGE_FILE_NAME}.tar.xz)
cmake_path(GET CPACK_TEMPORARY_DIRECTORY PARENT_PATH folder)
cmake_path(GET CPACK_TEMPORARY_DIRECTORY FILENAME name)
execute_process(COMMAND tar --sort=name --owner=0 --group=0 -I ${OOC_XZ} -cf ${archive} ${name}
                WORKING_DIRECTORY ${folder} COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE ${CPACK_TEMPORARY_DIRECTORY})
set(CPACK_EXTERNAL_BUILT_PACKAGES ${archive})
