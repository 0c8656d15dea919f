import ToolSupport

await Tool(
  StoryCommand.command, version: "0.1.0", meanings: StoryFailure.meanings,
  translate: StoryFailure.translate
).main()
