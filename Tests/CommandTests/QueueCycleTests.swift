internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// Requests of an export that wait for each other.
@Suite(.timeLimit(.minutes(5))) struct QueueCycleTests {
    @Test(arguments: QueueFixture.Backend.allCases)
    func `an import whose requests wait for each other changes nothing`(backend: QueueFixture.Backend)
        async throws
    {
        let source = try await QueueFixture(.service, count: 1)
        try await source.service?.keep("http://127.0.0.1:1/", "--id", "b", "--dependency", "req-0")
        let file = source.directory.file("export")
        let exported = try await source.run("export").output.map { $0 + "\n" }.dropLast().joined()
        let edited = exported.replacing(#""dependencies":[]"#, with: #""dependencies":["b"]"#)
        try #require(edited != exported)
        try Data(edited.utf8).write(to: URL(fileURLWithPath: file))
        try shell(
            #"""
            sum=$(sha256sum <\#(file) | cut -c 1-64)
            echo '{"end":{"requests":2,"sha256":"'$sum'"}}' >>\#(file)
            """#
        )
        let target = try await QueueFixture(backend, count: 0)
        let imported = try await target.run("import", file)
        #expect(imported.ending == .exited(2), "\(imported)")
        let words = "requests of the export wait for each other: dependency cycle: `"
        #expect(imported.errors.first?.contains(words) == true, "\(imported.errors)")
        #expect(try await target.states().isEmpty)
    }
}
