// Module LMDB
