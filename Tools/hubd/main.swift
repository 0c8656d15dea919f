import ToolSupport

await Tool(
  HubdCommand.root, version: "0.1.0", meanings: HubdFailure.meanings,
  translate: HubdFailure.translate
).main()
