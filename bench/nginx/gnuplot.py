"""Figures of several panels with one legend, drawn by gnuplot.

All sizes are in pixels; a figure is as large as its panels need. What gnuplot
cannot know before it draws, the width of texts, is estimated from the number
of their letters, generously.
"""

import dataclasses
import shutil
import subprocess

PANEL_W, PANEL_H = 330, 240  # of the plotted area
GAP_X, GAP_Y = 70, 78        # between plotted areas: numbers, titles
LEFT, TOP, BOTTOM = 90, 104, 72
KEY_GAP, KEY_SAMPLE, KEY_LINE = 24, 56, 24
LETTER = 8.2                 # width of a letter of the legend
TITLE_LETTER = 9.6
FONT = 'DejaVu Sans'
# Sizes of text, title and markers; gnuplot counts them differently in each.
SIZES = {'svg': (15, 19, 0.75), 'png': (12, 15, 1.0)}

# Ticks of a log scale in each decade, for less than this from end to end.
STEPS = ((2.5, (1, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8, 2, 3, 4, 5, 6, 7, 8, 9)),
         (8, (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)),
         (800, (1, 2, 5)), (float('inf'), (1,)))


@dataclasses.dataclass(frozen=True)
class Style:
    color: str
    marker: int  # gnuplot's pointtype
    dash: str = 'solid'  # or lengths of dashes and gaps: '8,5'
    width: float = 1.8


@dataclasses.dataclass
class Series:
    label: str
    style: Style
    points: list  # pairs of x and y
    markers: list = None  # where markers are; None: at each point


@dataclasses.dataclass
class Panel:
    title: str
    series: list


@dataclasses.dataclass
class Axis:
    label: str
    log: bool = False
    ticks: list = None  # pairs of text and value; None: gnuplot's own
    range: tuple = None


@dataclasses.dataclass
class Figure:
    name: str
    title: str
    note: str  # a second line below the title
    x: Axis
    y: Axis
    panels: list
    columns: int = 2
    same_y: bool = False  # one range of y in all panels
    reference: float = None  # a horizontal line

    def legend(self):
        """Label and style of each series, once."""
        found = {}
        for panel in self.panels:
            for series in panel.series:
                found[series.label] = series.style
        return [(label, style) for label, style in found.items()]


def quoted(text):
    return "'" + str(text).replace("'", "''") + "'"


def size_of(figure):
    columns = min(figure.columns, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    entries = figure.legend()
    longest = max(len(label) for label, _ in entries)
    key = KEY_GAP + KEY_SAMPLE + LETTER * longest + 16
    width = LEFT + columns * (PANEL_W + GAP_X) - GAP_X + key
    title = TITLE_LETTER * max(len(figure.title), 0.85 * len(figure.note)) + 40
    height = TOP + rows * (PANEL_H + GAP_Y) - GAP_Y + BOTTOM
    height = max(height, TOP + KEY_LINE * len(entries) + 20)
    return round(max(width, title)), round(height), columns


def style_words(style, what):
    words = f'lc rgb {quoted(style.color)}'
    if 'lines' in what:
        dash = '' if style.dash == 'solid' else f' dt ({style.dash})'
        words += f' lw {style.width}{dash}'
    if 'points' in what:
        words += f' pt {style.marker}'
    return f'with {what} {words}'


def blocks(figure):
    """The data of all series, as gnuplot's named blocks."""
    lines = []
    for p, panel in enumerate(figure.panels):
        for s, series in enumerate(panel.series):
            for kind, points in (('l', series.points), ('m', markers(series))):
                lines.append(f'${kind}{p}_{s} << EOD')
                lines += [f'{x:.10g} {y:.10g}' for x, y in points]
                lines.append('EOD')
    return lines


def markers(series):
    return series.points if series.markers is None else series.markers


def axis_lines(name, axis):
    lines = [f'set logscale {name}' if axis.log else f'unset logscale {name}',
             f'set format {name} "%g"']
    if axis.ticks:
        ticks = ', '.join(f'{quoted(text)} {value:.10g}'
                          for text, value in axis.ticks)
        lines.append(f'set {name}tics ({ticks}) nomirror')
    else:
        lines.append(f'set {name}tics nomirror autofreq')
    return lines


def y_span(axis, panels):
    """From below the least to above the most, so that nothing is on the
    frame; on a log scale at least a factor of 1.5."""
    values = [y for panel in panels for series in panel.series
              for _, y in series.points]
    low, high = min(values), max(values)
    if not axis.log:
        return 0, high * 1.08
    if high / low < 1.5:
        middle = (high * low) ** 0.5
        low, high = middle / 1.5 ** 0.5, middle * 1.5 ** 0.5
    edge = (high / low) ** 0.06
    return low / edge, high * edge


def range_of(axis, panels):
    low, high = axis.range or y_span(axis, panels)
    return f'[{low:.10g}:{high:.10g}]'


def y_ticks(axis, span):
    """More in each decade where there are few decades."""
    low, high = span
    if not axis.log or axis.ticks:
        return axis
    steps = next(steps for most, steps in STEPS if high / low < most)
    ticks = [(f'{step * 10.0 ** e:g}', step * 10.0 ** e)
             for e in range(-9, 10) for step in steps
             if low <= step * 10.0 ** e <= high]
    return dataclasses.replace(axis, ticks=ticks)


def panel_lines(figure, p, size):
    width, height, columns = size
    row, column = divmod(p, columns)
    left = LEFT + column * (PANEL_W + GAP_X)
    top = TOP + row * (PANEL_H + GAP_Y)
    panel = figure.panels[p]
    last_row = p + columns >= len(figure.panels)
    shown = figure.panels if figure.same_y else [panel]
    span = figure.y.range or y_span(figure.y, shown)
    lines = [
        f'set lmargin at screen {left / width:.6f}',
        f'set rmargin at screen {(left + PANEL_W) / width:.6f}',
        f'set tmargin at screen {1 - top / height:.6f}',
        f'set bmargin at screen {1 - (top + PANEL_H) / height:.6f}',
        f'set title {quoted(panel.title)} offset 0,-0.4',
        f'set xlabel {quoted(figure.x.label if last_row else "")}',
        f'set ylabel {quoted("" if column else figure.y.label)}',
        f'set xrange {range_of(figure.x, None)}',
        f'set yrange {range_of(figure.y, shown)}']
    lines += axis_lines('x', figure.x)
    lines += axis_lines('y', y_ticks(figure.y, span))
    return lines + [plot_line(figure, p)]


def plot_line(figure, p):
    parts = []
    if figure.reference is not None:
        parts.append(f'{figure.reference} with lines lc rgb "#909090" lw 1')
    for s, series in enumerate(figure.panels[p].series):
        parts.append(f'$l{p}_{s} ' + style_words(series.style, 'lines'))
        parts.append(f'$m{p}_{s} ' + style_words(series.style, 'points'))
    return 'plot ' + ', '.join(parts)


def legend_lines(figure, size):
    """Beside the panels: a line, its marker and the label of each series."""
    width, height, columns = size
    left = LEFT + columns * (PANEL_W + GAP_X) - GAP_X + KEY_GAP
    lines = ['unset title', 'unset xlabel', 'unset ylabel', 'unset tics',
             'unset border', 'unset grid', 'unset logscale',
             'set lmargin at screen 0', 'set rmargin at screen 1',
             'set bmargin at screen 0', 'set tmargin at screen 1',
             f'set xrange [0:{width}]', f'set yrange [{height}:0]']
    parts = []
    for i, (label, style) in enumerate(figure.legend()):
        y = TOP + 10 + i * KEY_LINE
        lines += [f'$k{i} << EOD', f'{left} {y}', f'{left + 40} {y}', 'EOD',
                  f'$c{i} << EOD', f'{left + 20} {y}', 'EOD',
                  f'set label {quoted(label)} at {left + 50},{y} left']
        parts += [f'$k{i} ' + style_words(style, 'lines'),
                  f'$c{i} ' + style_words(style, 'points')]
    return lines + ['plot ' + ', '.join(parts)]


def script(figure, terminal, path):
    size = size_of(figure)
    width, height, _ = size
    text, title, marker = SIZES[path.suffix[1:]]
    lines = blocks(figure) + [
        f'set terminal {terminal} size {width},{height} noenhanced rounded '
        f'font {quoted(f"{FONT},{text}")} background rgb "white"',
        f'set output {quoted(path)}', f'set pointsize {marker}',
        'set encoding utf8', 'unset key',
        'set border 3 lc rgb "#404040"',
        'set grid lc rgb "#c4c4c4" lw 1 dt (2,3)', 'set multiplot',
        f'set label 1 {quoted(figure.title)} at screen {20 / width:.6f},'
        f'{1 - 24 / height:.6f} left font {quoted(f"{FONT},{title}")}',
        f'set label 2 {quoted(figure.note)} at screen {20 / width:.6f},'
        f'{1 - 48 / height:.6f} left']
    for p in range(len(figure.panels)):
        lines += panel_lines(figure, p, size)
        lines += ['unset label 1', 'unset label 2'] if p == 0 else []
    return '\n'.join(lines + legend_lines(figure, size)
                     + ['unset multiplot', 'unset output', ''])


def run(text):
    return subprocess.run(['gnuplot', '-'], input=text, text=True,
                          capture_output=True, timeout=120)


def terminals():
    """The terminal for each kind of file, and what could not be had."""
    if shutil.which('gnuplot') is None:
        return {}, ['No plots: the command gnuplot is missing (package '
                    'gnuplot-nox).']
    found, missing = {}, []
    for kind, names in (('svg', ('svg',)), ('png', ('pngcairo', 'png'))):
        has = [n for n in names if run(f'set terminal {n}\n').returncode == 0]
        if has:
            found[kind] = has[0]
        if has[:1] != [names[0]]:
            missing.append(f'Plots as {kind.upper()}: this gnuplot has no '
                           f'terminal {names[0]}, '
                           + (f'{has[0]} is used.' if has else 'left out.'))
    return found, missing


def fault(text):
    """What gnuplot says is wrong, without the command that it repeats."""
    said = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in said if line.startswith('line ')),
                said[-1] if said else 'failed')


def draw(figure, folder, found):
    """Writes the figure in each kind of file; the paths."""
    paths = []
    for kind, terminal in found.items():
        path = folder / f'{figure.name}.{kind}'
        done = run(script(figure, terminal, path))
        if done.returncode != 0 or done.stderr.strip():
            raise RuntimeError(f'gnuplot, {path.name}: {fault(done.stderr)}')
        paths.append(path)
    return paths
