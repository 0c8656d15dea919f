@_exported import HubClient
@_exported import HubProtocol
@_exported import LMDB
@_exported import ProfileStore
@_exported import ProfileSync
