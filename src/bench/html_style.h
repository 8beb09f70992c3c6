// The look of report pages, light and dark.
#pragma once

#include <string_view>

namespace octavo {

inline constexpr std::string_view kReportStyle = R"css(
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1b2330;--soft:#5b6675;--rule:#dfe4ea;
--good:#0b7a4b;--bad:#b3362b;--shared:#3b4554;--cached:#b9c1cc;--ground:#eef1f4;
--c0:#7b8794;--c1:#1f6feb;--c2:#d9730d;--c3:#0f8a6d;--c4:#c2418f;--c5:#7a5af0;--c6:#8a7212;--c7:#c23b4b;
--c8:#12a5c4;--c9:#5d8a12;--c10:#8c5a3c;--c11:#26336b}
@media (prefers-color-scheme:dark){:root{--page:#12161c;--card:#1a2029;--ink:#e6eaf0;--soft:#9aa6b5;
--rule:#2c3541;--good:#4cc38a;--bad:#f0857a;--shared:#cfd7e2;--cached:#525d6c;--ground:#232b36;
--c0:#98a4b3;--c1:#5c9dff;--c2:#f2a04e;--c3:#3fc6a2;--c4:#f07cc0;--c5:#a892ff;--c6:#d3b848;--c7:#f47c88;
--c8:#4fd3ee;--c9:#a3d14a;--c10:#cf9a78;--c11:#c9d3ff}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,"Segoe UI",Roboto,sans-serif}
main{max-width:1180px;margin:0 auto;padding:32px 20px 48px}
h1{font-size:28px;line-height:1.2;margin:0 0 16px}
h2{font-size:18px;margin:36px 0 12px}
.kicker,footer,dt{color:var(--soft)}
.kicker{margin:0 0 4px;font-size:13px;letter-spacing:.06em;text-transform:uppercase}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 20px;margin:0}
dd{margin:0;min-width:0}
code{font:13px/1.5 ui-monospace,Menlo,Consolas,monospace;overflow-wrap:anywhere}
.card{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:16px}
.answer{margin:0 0 24px}.answer p{margin:0 0 8px;font-size:17px;line-height:1.4}
.answer p:first-child{font-size:21px;font-weight:600}
.panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr));gap:18px;margin-top:16px}
.panel svg{max-width:720px}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr));gap:14px}
.maps{display:grid;gap:14px}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:5px 10px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--rule)}
th,.wrap,td:first-child{white-space:normal}
th:first-child,td:first-child{text-align:left}
thead th{border-bottom:2px solid var(--rule);vertical-align:bottom}
tbody tr:last-child td{border-bottom:0}
.ratio{color:var(--soft);padding-left:0}
.good{color:var(--good)}.bad{color:var(--bad)}
.key{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:7px;background:var(--c)}
.keys{display:flex;flex-wrap:wrap;gap:6px 22px;margin:0 0 12px;color:var(--soft)}
svg{display:block;width:100%;height:auto}
svg svg{width:auto}
.t{font-size:12px;fill:var(--soft)}.head{font-size:14px;font-weight:600;fill:var(--ink)}
.grid{stroke:var(--rule);fill:none}
.whisker{stroke:var(--ink);stroke-width:1.2;fill:none}
.bar{fill:var(--c);fill-opacity:.75}
.line.again{stroke-dasharray:6 4}.dot.again{fill:var(--card);stroke:var(--c);stroke-width:2}
.key.again{background:var(--card);border:2px solid var(--c)}
summary{cursor:pointer;margin:14px 0 8px;color:var(--soft)}
.common{color:var(--soft);overflow-wrap:anywhere}
.line{stroke:var(--c);stroke-width:2;fill:none;stroke-linejoin:round}
.dot,.name{fill:var(--c)}
.frontier{stroke:var(--soft);stroke-width:1.5;stroke-dasharray:5 4;fill:none}
.cell{fill:var(--c);shape-rendering:crispEdges}
.empty{fill-opacity:.25}.ground{fill:var(--ground)}
.cached{--c:var(--cached)}.shared{--c:var(--shared)}.free{--c:var(--ground)}
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}
.c4{--c:var(--c4)}.c5{--c:var(--c5)}.c6{--c:var(--c6)}.c7{--c:var(--c7)}
.c8{--c:var(--c8)}.c9{--c:var(--c9)}.c10{--c:var(--c10)}.c11{--c:var(--c11)}
footer{margin-top:40px;font-size:13px}
@media print{body{background:#fff}.card{break-inside:avoid}}
)css";

}  // namespace octavo
