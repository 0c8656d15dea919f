// swift-tools-version:6.2
import PackageDescription

// C libraries come from the system, found by pkg-config; there is no package from outside.
// A library that exists only as a C target of ours (a shim for variadic calls and macros) is named
// C..., and exactly one Swift module may import it.
let package = Package(
  name: "Holdfast",
  platforms: [.macOS(.v26), .iOS(.v26)],
  products: [
    .library(name: "Holdfast", targets: ["Holdfast"]),
    .library(name: "LMDB", targets: ["LMDB"]),
    .library(name: "HubServer", targets: ["HubServer"]),
    .library(name: "HoldfastTesting", targets: ["HoldfastTesting"]),
    .executable(name: "hubd", targets: ["hubd"]),
    .executable(name: "profilectl", targets: ["profilectl"]),
    .executable(name: "bench", targets: ["bench"]),
  ],
  targets: [
    .systemLibrary(name: "CLMDB", pkgConfig: "lmdb", providers: [.apt(["liblmdb-dev"])]),
    .systemLibrary(
      name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .systemLibrary(
      name: "CMicroHTTPD", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
    .systemLibrary(
      name: "CJOSE", pkgConfig: "cjose", providers: [.apt(["libcjose-dev", "libjansson-dev"])]),
    .systemLibrary(
      name: "CSQLite", path: "Tests/Examples/CSQLite", pkgConfig: "sqlite3",
      providers: [.apt(["libsqlite3-dev"])]),

    .target(name: "LMDB", dependencies: ["CLMDB"]),
    .target(name: "HubProtocol"),
    .target(name: "ProfileStore", dependencies: ["LMDB", "HubProtocol"]),
    .target(name: "ProfileSync", dependencies: ["ProfileStore", "HubProtocol"]),
    .target(
      name: "HubClient", dependencies: ["ProfileSync", "ProfileStore", "HubProtocol", "CCurl"]),
    .target(
      name: "Holdfast",
      dependencies: ["LMDB", "HubProtocol", "ProfileStore", "ProfileSync", "HubClient"]),
    // What a hub decides and answers, without sockets, tables and keys.
    .target(name: "HubRules", dependencies: ["HubProtocol"]),
    .target(
      name: "HubServer",
      dependencies: ["HubRules", "LMDB", "HubProtocol", "CMicroHTTPD", "CJOSE"]),

    // For the tests of apps.
    .target(
      name: "HoldfastTesting",
      dependencies: [
        "HubRules", "HubProtocol", "HubClient", "ProfileStore", "ProfileSync",
      ]),

    .target(
      name: "ToolSupport", path: "Tools/Shared",
      exclude: ["sessions.sh", "setup.sh", "tidy.sh", "tsan-mutex.c"]),
    .executableTarget(
      name: "hubd", dependencies: ["HubServer", "ToolSupport"], path: "Tools/hubd"),
    .executableTarget(
      name: "profilectl", dependencies: ["ProfileStore", "LMDB", "HubProtocol", "ToolSupport"],
      path: "Tools/profilectl"),

    // What `bench` measures against, in C; only `bench` imports it.
    .target(
      name: "CBench", dependencies: ["CLMDB", "CSQLite", "CCurl", "CMicroHTTPD"],
      path: "Tools/CBench"),
    .target(name: "Measuring", dependencies: ["ToolSupport"], path: "Tools/Measuring"),
    .executableTarget(
      name: "bench",
      dependencies: [
        "LMDB", "HubProtocol", "ProfileStore", "ProfileSync", "HubClient", "CBench", "Measuring",
        "ToolSupport",
      ],
      path: "Tools/benchmark"),

    // Devices, a hub and an executor of its own, all on one thread, by a seed; the machine that they run
    // on stands before the C library, so only `simulator` may link it.
    .target(
      name: "Simulation",
      dependencies: [
        "HoldfastTesting", "ProfileSync", "ProfileStore", "HubProtocol", "LMDB",
      ],
      path: "Tools/Simulation"),
    .target(name: "CMachine", dependencies: ["CLMDB"], path: "Tools/CMachine"),
    .executableTarget(
      name: "simulator", dependencies: ["Simulation", "CMachine"], path: "Tools/simulator"),

    .executableTarget(
      name: "quickstart-story", dependencies: ["Holdfast", "ToolSupport"], path: "Tools/story"),
    .executableTarget(name: "Readme", dependencies: ["Holdfast"], path: "Tests/Examples/Readme"),
    .executableTarget(
      name: "AreaNotes", dependencies: ["Holdfast"], path: "Tests/Examples/AreaNotes"),
    .executableTarget(
      name: "SQLiteNotes", dependencies: ["Holdfast", "CSQLite"],
      path: "Tests/Examples/SQLiteNotes"),
    .executableTarget(name: "note", dependencies: ["Holdfast"], path: "Tests/Examples/CommandLine"),
    .target(
      name: "Snippets", dependencies: ["Holdfast", "HoldfastTesting"],
      path: "Tests/Examples/Snippets"),
    .executableTarget(
      name: "FirstLMDB", dependencies: ["LMDB"], path: "Tests/Examples/FirstLMDB"),
    // Reads the pages of a catalogue.
    .target(name: "DocumentationSupport", path: "Tests/DocumentationSupport"),

    .testTarget(name: "LMDBTests", dependencies: ["LMDB"]),
    // Both start the compiler on what it must refuse.
    .testTarget(name: "LMDBCompileTests", dependencies: ["LMDB", "CompilerSupport"]),
    .testTarget(name: "ProfileSyncCompileTests", dependencies: ["ProfileSync", "CompilerSupport"]),
    // The compiler as a client of these modules starts it.
    .target(name: "CompilerSupport", path: "Tests/CompilerSupport"),
    // Debian's lmdb-utils and PyPI's lmdb are started beside the module.
    .testTarget(name: "LMDBCompatibilityTests", dependencies: ["LMDB"]),
    // The process that these tests start, kill and let run into every fault.
    .executableTarget(
      name: "lmdb-fault-child", dependencies: ["LMDB"], path: "Tests/LMDBFaultChild"),
    .testTarget(name: "LMDBFaultTests", dependencies: ["LMDB", "lmdb-fault-child"]),
    .testTarget(name: "HubProtocolTests", dependencies: ["HubProtocol"]),
    .testTarget(
      name: "HubClientTests",
      dependencies: ["SyncTestSupport", "HubClient", "HubProtocol", "ProfileSync", "HubServer"]),
    // `hubd` is started as a process by tests that kill it.
    .testTarget(
      name: "HubServerTests",
      dependencies: [
        "HubServer", "HubRules", "HubProtocol", "HoldfastTesting", "ProfileSync", "LMDB", "hubd",
      ]),
    .testTarget(name: "ProfileStoreTests", dependencies: ["ProfileStore", "LMDB", "HubProtocol"]),
    // A hub, devices and the wire between them, for tests of what goes over it.
    .target(
      name: "SyncTestSupport",
      dependencies: ["ProfileSync", "ProfileStore", "HubProtocol", "HubClient", "HubServer"],
      path: "Tests/SyncTestSupport"),
    .testTarget(
      name: "ProfileSyncTests",
      dependencies: [
        "SyncTestSupport", "ProfileSync", "ProfileStore", "LMDB", "HubProtocol", "HubClient",
        "HubServer", "HoldfastTesting",
      ]),
    .testTarget(
      name: "HoldfastTestingTests",
      dependencies: ["HoldfastTesting", "ProfileSync", "ProfileStore", "HubProtocol"]),
    // One test for each fault that people met elsewhere, and the process that they start and kill.
    .executableTarget(
      name: "case-child",
      dependencies: ["ProfileSync", "ProfileStore", "HubProtocol", "HubClient"],
      path: "Tests/CaseChild"),
    .testTarget(
      name: "CaseTests",
      dependencies: [
        "SyncTestSupport", "ProfileSync", "ProfileStore", "HubProtocol", "HubClient", "HubServer",
        "HoldfastTesting", "LMDB", "case-child", "hubd",
      ]),
    // The process that is killed at each step of its work, and runs into full disks and damaged files.
    .target(name: "CCrashSteps", path: "Tests/CCrashSteps"),
    .executableTarget(
      name: "crash-child",
      dependencies: [
        "CCrashSteps", "ProfileSync", "ProfileStore", "LMDB", "HubProtocol", "HubClient",
      ], path: "Tests/CrashChild"),
    // `crash-child` is no dependency: what it puts before the C library would be that of the tests.
    .testTarget(
      name: "CrashTests",
      dependencies: [
        "SyncTestSupport", "ProfileSync", "ProfileStore", "HubProtocol", "HubClient", "HubServer",
        "LMDB", "profilectl",
      ]),
    // Feeds decoders; `Tools/fuzz` builds it with libFuzzer.
    .executableTarget(
      name: "fuzz-decoders",
      dependencies: [
        "LMDB", "HubProtocol", "HubRules", "HubServer", "HubClient", "ProfileStore",
        "ProfileSync",
      ], path: "Tests/Fuzzing", exclude: ["corpus"]),
    // What the simulator checks by, and `simulator` as a process: no dependency, see there.
    .testTarget(
      name: "SimulationTests", dependencies: ["Simulation", "ProfileStore", "HubProtocol"]),
    .testTarget(name: "ToolSupportTests", dependencies: ["ToolSupport"]),
    // `bench` is started as a process. It is no dependency: its malloc would be that of the tests.
    .testTarget(name: "BenchTests", dependencies: ["Measuring", "ToolSupport"]),
    .testTarget(
      name: "DocumentationTests",
      dependencies: [
        "Holdfast", "HoldfastTesting", "HubServer", "Snippets", "Readme", "AreaNotes",
        "SQLiteNotes", "note", "DocumentationSupport",
      ]),
    // Its examples are the tests: the pages show lines of them.
    .testTarget(
      name: "LMDBDocumentationTests",
      dependencies: ["LMDB", "FirstLMDB", "DocumentationSupport"]),
    // `profilectl` is started as a process beside an app that writes.
    .testTarget(
      name: "ProfilectlTests",
      dependencies: ["profilectl", "ProfileStore", "LMDB", "HubProtocol", "ToolSupport"]),
  ],
  swiftLanguageModes: [.v6]
)

// One loop for the settings of every Swift target.
for target in package.targets where target.type != .system {
  var settings = target.swiftSettings ?? []
  settings += [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
  ]
  // `LMDB` lends values that the compiler keeps inside their transaction; clients need no flag.
  if target.name == "LMDB" {
    settings += [
      .enableExperimentalFeature("Lifetimes"),
      .enableExperimentalFeature("SuppressedAssociatedTypes"), .strictMemorySafety(),
    ]
  }
  // They lend the bytes of changes and pushes in place.
  if ["HubProtocol", "HubServer", "ProfileStore", "ProfileSync"].contains(target.name) {
    settings += [.enableExperimentalFeature("Lifetimes")]
  }
  // A pass runs where its caller runs, so that an apply closure needs no `Sendable`.
  if ["ProfileSync", "HoldfastTesting"].contains(target.name) {
    settings += [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]
  }
  target.swiftSettings = settings
}
