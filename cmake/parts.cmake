# Parts that can be left out. A part that is off is replaced by one small source file; nothing else knows.
option(QKV_PICTURES "PNG and SVG pictures (needs pangocairo)" ON)
option(QKV_SERVE "the page in the browser (needs libmicrohttpd)" ON)
option(QKV_SENTENCEPIECE "unigram and BPE tokenizers (needs SentencePiece)" ON)
option(QKV_GZIP ".gz files and PNG input (needs zlib)" ON)

# qkv_layers(LIST layer…): the sources of these folders of qkv/.
function(qkv_layers list)
  foreach(layer ${ARGN})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/qkv/${layer}/*.cc)
    list(APPEND all ${sources})
  endforeach()
  set(${list} ${all} PARENT_SCOPE)
endfunction()

# qkv_choose(LIST PART on off): takes the source that the part does not need out of the list.
function(qkv_choose list part on off)
  if(${part})
    set(unused ${off})
  else()
    set(unused ${on})
  endif()
  list(REMOVE_ITEM ${list} ${PROJECT_SOURCE_DIR}/qkv/${unused})
  set(${list} ${${list}} PARENT_SCOPE)
endfunction()
