// Module ProfileStore
