// Module HubServer
