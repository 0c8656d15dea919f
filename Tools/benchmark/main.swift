import ToolSupport

await Tool(
  BenchCommand.command, version: "0.1.0", meanings: BenchFailure.meanings,
  translate: BenchFailure.translate
).main()
