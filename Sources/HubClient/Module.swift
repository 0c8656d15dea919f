// Module HubClient
