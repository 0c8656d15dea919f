// Module ProfileSync
