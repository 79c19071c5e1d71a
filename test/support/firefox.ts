/**
 * The Firefox of the browser tests: that of the system, or the program in `FIREFOX`. It is an unmodified Firefox, which
 * playwright-core drives by WebDriver BiDi. playwright-core from 1.65 on needs `emulation.setMediaFeaturesOverride`, which Firefox ESR
 * 153 does not have.
 */
import { type Browser, firefox } from 'playwright-core';

/** Path of the program. */
export const FIREFOX = process.env.FIREFOX ?? '/usr/bin/firefox-esr';

/** Starts a headless browser with a temporary profile. Media features are preferences, which apply to all its pages. */
export function launchFirefox(media: {
  readonly theme: 'light' | 'dark';
  readonly reducedMotion: boolean;
  readonly forcedColors: boolean;
}): Promise<Browser> {
  return firefox.launch({
    channel: 'moz-firefox',
    executablePath: FIREFOX,
    firefoxUserPrefs: {
      'layout.css.prefers-color-scheme.content-override': media.theme === 'dark' ? 0 : 1,
      'ui.prefersReducedMotion': media.reducedMotion ? 1 : 0,
      // 2: always the colours of the browser. 0: only if the system has a high contrast.
      'browser.display.document_color_use': media.forcedColors ? 2 : 0,
    },
  });
}
