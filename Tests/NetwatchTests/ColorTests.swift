internal import Testing

@testable internal import netwatch

/// When and how text has colours.
@Suite struct ColorTests {
    @Test(
        arguments: [
            (.auto, true, ["TERM": "xterm"], true), (.auto, false, ["TERM": "xterm"], false),
            (.auto, true, [:], false), (.auto, true, ["TERM": "dumb"], false),
            (.auto, true, ["TERM": "xterm", "NO_COLOR": "1"], false),
            (.auto, true, ["TERM": "xterm", "NO_COLOR": ""], true),
            (.auto, false, ["CLICOLOR_FORCE": "1"], true), (.auto, false, ["CLICOLOR_FORCE": "0"], false),
            (.auto, false, ["CLICOLOR_FORCE": "1", "NO_COLOR": "1"], false),
            (.always, false, ["NO_COLOR": "1"], true), (.never, true, ["CLICOLOR_FORCE": "1"], false),
        ] as [(ColorChoice, Bool, [String: String], Bool)]
    )
    func `the option, the variables and the terminal decide, in this order`(
        choice: ColorChoice,
        isTerminal: Bool,
        variables: [String: String],
        hasColors: Bool
    ) {
        #expect(choice.showsColors(onTerminal: isTerminal, variables) == hasColors)
    }

    @Test func `only styles add control sequences`() {
        let text = StyledText("a\u{1B}[31m  ") + StyledText(state: "not reachable") + StyledText("  b")
        #expect(text.rendered(withStyles: false) == "a\\u{1B}[31m  not reachable  b")
        #expect(text.rendered(withStyles: true) == "a\\u{1B}[31m  \u{1B}[31mnot reachable\u{1B}[0m  b")
    }

    @Test(arguments: [(8, "up  back"), (7, "up  ba…"), (2, "u…"), (1, "…")])
    func `a styled text is cut to the window without its control sequences`(width: Int, text: String) {
        let styled = StyledText(state: "up") + StyledText("  back")
        #expect(styled.shortened(to: width).plain == text)
        #expect(styled.shortened(to: 7).rendered(withStyles: true) == "\u{1B}[32mup\u{1B}[0m  ba…")
        #expect(StyledText("a\u{202E}b").shortened(to: 9).plain == #"a\u{202E…"#)
    }
}
