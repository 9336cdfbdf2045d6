internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// The example alerts and the example dashboard in packaging/monitoring.
struct MonitoringFilesTests {
    private static let rules = "packaging/monitoring/netwatch.rules.yml"
    private static let unitTests = "packaging/monitoring/netwatch.rules.test.yml"
    private static let dashboard = "packaging/monitoring/netwatch-dashboard.json"

    @Test(arguments: [rules, dashboard])
    func `the examples use only metrics that exist`(path: String) throws {
        let text = try Repository.text(path)
        let names = text.matches(of: /((?:netwatch|process)_[a-z_]+?)(?:_bucket|_sum|_count)?(?![a-z_])/)
        let used = names.map { String($0.1) }
        #expect(used.count > 15)
        #expect(Set(used).subtracting(try DocumentationPage("docs/operations.md").metrics) == [])
    }

    @Test func `each panel of the dashboard has a query and its own id`() throws {
        let text = try Repository.text(Self.dashboard)
        let panels = try #require(try JSONValue(Data(text.utf8))["panels"]).elements
        let queries = panels.map { $0["targets"]?.elements.compactMap { $0["expr"]?.string } ?? [] }
        #expect(panels.count > 10)
        #expect(queries.allSatisfy { !$0.isEmpty })
        #expect(Set(panels.map { $0["id"] }).count == panels.count)
    }

    @Test(arguments: [["check", "rules", rules], ["test", "rules", unitTests]])
    func `promtool accepts the alerts, and they fire as expected`(arguments: [String]) async throws {
        let outcome = try await Subprocess(TestProgram.path("promtool"), arguments).outcome()
        #expect(outcome.ending == .exited(0), "\(outcome.output + outcome.errors)")
    }

    @Test(arguments: [("promql", "rules"), ("yaml", "config")])
    func `promtool accepts the examples of the documentation`(language: String, kind: String) async throws {
        let promtool = try await TestProgram.path("promtool")
        let examples = try DocumentationPage.all().flatMap { $0.codeBlocks(in: language) }
        #expect(!examples.isEmpty)
        let directory = try ScratchDirectory()
        for example in examples {
            let alert = "groups: [{name: example, rules: [{alert: Example, expr: '\(example.text)'}]}]"
            let text = language == "promql" ? alert : example.text
            let file = try directory.write(Array(text.utf8), to: "example.yml")
            let outcome = try await Subprocess(promtool, ["check", kind, file]).outcome()
            #expect(outcome.ending == .exited(0), "\(text)\n\(outcome.output + outcome.errors)")
        }
    }
}

extension DocumentationPage {
    /// The names of the metrics that the tables of the page describe.
    var metrics: Set<String> {
        Set(
            rows.compactMap { row in
                row[0].wholeMatch(of: /`((?:netwatch|process)_[a-z_]+).*`/).map { String($0.1) }
            }
        )
    }
}
