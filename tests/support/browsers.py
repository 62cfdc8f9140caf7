"""A real headless Chromium, from the system or from Playwright's own store."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from playwright.sync_api import Browser, sync_playwright

Theme: TypeAlias = Literal["light", "dark"]

CUT_OFF = """() => [...document.querySelectorAll('svg text')].filter((text) => {
  const box = text.getBoundingClientRect(), frame = text.ownerSVGElement.getBoundingClientRect();
  return box.width > 0 && (box.left < frame.left - 1 || box.right > frame.right + 1
    || box.top < frame.top - 2 || box.bottom > frame.bottom + 2);
}).map((text) => text.textContent)"""
"""Texts of pictures that reach beyond their frame."""

FAINT = """() => {
  const channel = (value) => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => parts(colour).slice(0, 3).map((value) => channel(value / 255))
    .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((parts(colour)[3] ?? 1) > 0) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const texts = [...document.querySelectorAll('body *')].filter((element) =>
    [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())
    && !['title', 'desc'].includes(element.tagName));
  return [texts.length, texts.filter((element) => {
    const style = getComputedStyle(element);
    const pair = [light(element.ownerSVGElement ? style.fill : style.color), light(ground(element))];
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05) < 4.5;
  }).map((element) => element.outerHTML.slice(0, 120))];
}"""
"""How many texts there are, and those that stand out too little from what is behind them."""

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def chromium() -> Generator[Browser]:
    """Run Chromium; `make .venv/browser` installs it."""
    program = next((found for name in _NAMES if (found := shutil.which(name))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        try:
            yield browser
        finally:
            browser.close()
