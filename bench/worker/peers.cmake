# The peers: each is built where its library is installed (docs/internals/decisions/peers.md), otherwise left out, and `stillpoint bench`
# says so. -DSTILLPOINT_WITHOUT_PEERS="lmdb;sqlite" leaves out what is installed.
set(STILLPOINT_WITHOUT_PEERS "" CACHE STRING "Peers of `stillpoint bench` that are not built although they are installed")

# bench_peer(NAME MACRO SOURCE WORKLOADS HEADER LIBRARY): the library bench_peer_NAME and the worker bench_worker_NAME.
function(bench_peer name macro source workloads header library)
    string(TOUPPER ${library} variable)
    find_path(${variable}_INCLUDE_DIR ${header})
    find_library(${variable}_LIBRARY NAMES ${library})
    if(name IN_LIST STILLPOINT_WITHOUT_PEERS OR NOT ${variable}_INCLUDE_DIR OR NOT ${variable}_LIBRARY)
        message(STATUS "bench: the peer ${name} is left out (Debian: lib${library}-dev)")
        return()
    endif()
    add_library(bench_peer_${name} STATIC ${CMAKE_SOURCE_DIR}/bench/engines/${source})
    target_compile_definitions(bench_peer_${name} PUBLIC _GNU_SOURCE ${macro} BENCH_ENGINE=${name})
    target_compile_options(bench_peer_${name} PRIVATE -O2)
    target_include_directories(bench_peer_${name} SYSTEM PUBLIC ${${variable}_INCLUDE_DIR})
    target_link_libraries(bench_peer_${name} PUBLIC Threads::Threads ${${variable}_LIBRARY})
    bench_worker(${name} BENCH_ENGINE=${name} ${workloads} bench_peer_${name})
    set_property(GLOBAL APPEND PROPERTY STILLPOINT_BENCH_ON_DEMAND bench_peer_${name} bench_worker_${name})
endfunction()

# The door for peers, which loads a library, and the example of one: through the door, and called directly.
add_library(bench_loaded_store OBJECT ${CMAKE_SOURCE_DIR}/bench/engines/loaded_store.cpp)
target_compile_definitions(bench_loaded_store PRIVATE _GNU_SOURCE)
target_compile_options(bench_loaded_store PRIVATE -O2)
bench_worker(loaded BENCH_ENGINE=loaded bench_store_workloads bench_loaded_store ${CMAKE_DL_LIBS})
bench_worker(striped_maps BENCH_ENGINE=striped_maps bench_store_workloads)
set_property(GLOBAL APPEND PROPERTY STILLPOINT_BENCH_ON_DEMAND bench_worker_striped_maps)

bench_peer(pmemobj BENCH_PMEMOBJ pmemobj_pool.cpp bench_all_workloads libpmemobj.h pmemobj)
if(TARGET bench_worker_pmemobj)  # All workloads once more; tests compile its store alone.
    set_property(GLOBAL APPEND PROPERTY STILLPOINT_BENCH_UNTESTED bench_worker_pmemobj)
endif()
bench_peer(lmdb BENCH_LMDB lmdb_store.cpp bench_store_workloads lmdb.h lmdb)
bench_peer(rocksdb BENCH_ROCKSDB rocksdb_store.cpp bench_store_workloads rocksdb/db.h rocksdb)
bench_peer(sqlite BENCH_SQLITE sqlite_store.cpp bench_store_workloads sqlite3.h sqlite3)

# bench_glued_peer(NAME HEADER LIBRARY): build/lib/libpeer_NAME.so of the glue bench/peer/NAME.cpp, for `stillpoint bench --peer`.
function(bench_glued_peer name header library)
    find_path(STILLPOINT_PEER_${name}_INCLUDE_DIR ${header})
    find_library(STILLPOINT_PEER_${name}_LIBRARY NAMES ${library})
    if(NOT STILLPOINT_PEER_${name}_INCLUDE_DIR OR NOT STILLPOINT_PEER_${name}_LIBRARY)
        message(STATUS "bench: the glue of the peer ${name} is left out (Debian: lib${library}-dev)")
        return()
    endif()
    add_library(bench_peer_${name} MODULE ${CMAKE_SOURCE_DIR}/bench/peer/${name}.cpp)
    target_compile_options(bench_peer_${name} PRIVATE -O2)
    target_include_directories(bench_peer_${name} SYSTEM PRIVATE ${STILLPOINT_PEER_${name}_INCLUDE_DIR})
    target_link_libraries(bench_peer_${name} PRIVATE ${STILLPOINT_PEER_${name}_LIBRARY})
    set_target_properties(bench_peer_${name} PROPERTIES OUTPUT_NAME peer_${name} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
    set_property(GLOBAL APPEND PROPERTY STILLPOINT_BENCH_ON_DEMAND bench_peer_${name})
endfunction()

bench_glued_peer(leveldb leveldb/db.h leveldb)
bench_glued_peer(tkrzw tkrzw_dbm_hash.h tkrzw)
bench_glued_peer(wiredtiger wiredtiger.h wiredtiger)
