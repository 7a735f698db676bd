"""The filters of ecg.toml beside SciPy's on the real recording: largest error and signal-to-noise ratio, and a plot.

    python examples/ecg/plot.py             prints the figures
    python examples/ecg/plot.py ecg.svg     draws as well; needs matplotlib

What the device computes comes from mcugen in Python, which the C equals bit for bit; SciPy designs the filters anew and
runs them in float64.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy import signal

import mcugen.features as mf

HERE = Path(__file__).resolve().parent
RATE, SCALE, MAINS = 360.0, 0.005, 60.0  # Hz, mV a count, Hz


def recording() -> np.ndarray:
    """(1024, 1) int16: the counts."""
    return np.asarray(np.load(HERE / "ecg.npy"))


def by_scipy(counts: np.ndarray) -> np.ndarray:
    """(T,) mV: what SciPy makes of the counts in float64, from rest."""
    b, a = signal.iirnotch(MAINS, 30.0, fs=RATE)
    sos = signal.butter(2, [0.5, 40.0], "bandpass", fs=RATE, output="sos")
    return np.asarray(signal.sosfilt(sos, signal.lfilter(b, a, SCALE * counts[:, 0].astype(np.float64))))


def by_device(counts: np.ndarray) -> np.ndarray:
    """(T,) mV: what ecg_push gives."""
    return np.asarray(mf.load(HERE / "ecg.toml").transform(counts)[:, 0])


def hum(x: np.ndarray) -> float:
    """Amplitude at the frequency of the mains, in the unit of x; the first second, in which filters settle, apart."""
    rest = x[int(RATE) :]
    turns = np.exp(-2j * np.pi * MAINS / RATE * np.arange(len(rest)))
    window = np.hanning(len(rest))
    return float(2 * np.abs(np.sum((rest - rest.mean()) * turns * window)) / window.sum())


def figures(counts: np.ndarray) -> tuple[float, float]:
    """The largest error in mV, and the ratio of signal to error in dB."""
    want = by_scipy(counts)
    error = by_device(counts) - want
    return float(np.abs(error).max()), float(10 * np.log10(np.sum(want**2) / np.sum(error**2)))


def draw(counts: np.ndarray, path: Path) -> None:
    """Before, after, and the difference to SciPy."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 an optional tool
    except ImportError:
        sys.exit("plot.py: a plot needs matplotlib: pip install matplotlib")
    mpl.use("svg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    mpl.rcParams |= {"svg.hashsalt": "ecg", "svg.fonttype": "none", "font.size": 9}  # the same bytes every time
    seconds = np.arange(len(counts)) / RATE
    figure, (raw, filtered, error) = plt.subplots(3, 1, sharex=True, figsize=(8, 5.5), layout="constrained")
    raw.plot(seconds, SCALE * counts[:, 0], color="0.4", linewidth=0.8)
    raw.set_title("as recorded", loc="left")
    filtered.plot(seconds, by_scipy(counts), color="tab:orange", linewidth=2.5, label="SciPy, float64")
    filtered.plot(seconds, by_device(counts), color="tab:blue", linewidth=0.8, label="the device, 32-bit integers")
    filtered.legend(loc="upper center", frameon=False)
    filtered.set_title("notch at 60 Hz, band-pass 0.5 to 40 Hz", loc="left")
    error.plot(seconds, 1000 * (by_device(counts) - by_scipy(counts)), color="tab:red", linewidth=0.8)
    error.set_title("the device less SciPy", loc="left")
    for axes, unit in ((raw, "mV"), (filtered, "mV"), (error, "µV")):
        axes.set_ylabel(unit)
        axes.spines[["top", "right"]].set_visible(False)
    error.set_xlabel("seconds")
    figure.savefig(path, metadata={"Date": None, "Creator": None})


def main() -> None:
    counts = recording()
    error, snr = figures(counts)
    print(f"largest error {1000 * error:.3f} uV, {SCALE * 1000:.0f} uV a count; signal to error {snr:.1f} dB")
    before, after = hum(SCALE * counts[:, 0]), hum(by_device(counts))
    print(f"60 Hz hum: {1000 * before:.1f} uV before, {1000 * after:.1f} uV after")
    if len(sys.argv) > 1:
        draw(counts, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
