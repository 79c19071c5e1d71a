// Generated from layout.mjml by: LAYOUT=write npm run test:tools
import type { MailParts } from './mail-parts.ts';

/** Returns the HTML of an e-mail. All inserted text is escaped by `escapeHtml`. */
export function layout(mail: MailParts, escapeHtml: (text: string) => string): string {
  let html = '';
  html += `<!doctype html>
<html lang="${escapeHtml(mail.locale)}" dir="ltr" xmlns="http://www.w3.org/1999/xhtml" xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office">
<head>
<title>${escapeHtml(mail.subject)}</title>
<!--[if !mso]><!-->
<meta http-equiv="X-UA-Compatible" content="IE=edge">
<!--<![endif]-->
<meta http-equiv="Content-Type" content="text/html; charset=UTF-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style type="text/css">
#outlook a { padding:0; }
body { margin:0;padding:0;-webkit-text-size-adjust:100%;-ms-text-size-adjust:100%; }
table, td { border-collapse:collapse;mso-table-lspace:0pt;mso-table-rspace:0pt; }
img { border:0;height:auto;line-height:100%; outline:none;text-decoration:none;-ms-interpolation-mode:bicubic; }
p { display:block;margin:13px 0; }
</style>
<!--[if mso]>
<noscript>
<xml>
<o:OfficeDocumentSettings>
<o:AllowPNG/>
<o:PixelsPerInch>96</o:PixelsPerInch>
</o:OfficeDocumentSettings>
</xml>
</noscript>
<![endif]-->
<!--[if lte mso 11]>
<style type="text/css">
.mj-outlook-group-fix { width:100% !important; }
</style>
<![endif]-->
<style type="text/css">
@media only screen and (min-width:480px) {
.mj-column-per-100 { width:100% !important; max-width: 100%; }
}
</style>
<style media="screen and (min-width:480px)">
.moz-text-html .mj-column-per-100 { width:100% !important; max-width: 100%; }
</style>
<style type="text/css">
:root { color-scheme: light dark; supported-color-schemes: light dark; }
a { word-break: break-word; }
.whole { white-space: nowrap; }
@media (max-width: 479px) {
.ink, .muted, .rows, .button { padding-left: 22px !important; padding-right: 22px !important; }
.heading > div { font-size: 25px !important; line-height: 31px !important; }
.button > table, .button a { width: 100% !important; box-sizing: border-box; }
.card { border-radius: 0 !important; }
}
@media (prefers-color-scheme: dark) {
body, .page, .page > div { background-color: #11151a !important; }
.card, .card > table { background-color: #1b2128 !important; }
.ink > div, .ink a, .rows td { color: #e9edf1 !important; }
.muted > div, .muted a, .rows .soft, .ink .soft { color: #a3afba !important; }
.rows td { border-color: #333d47 !important; }
.button td { border-color: #59646f !important; }
.logo img { background-color: #ffffff !important; color: #1f2933 !important; border-radius: 6px; padding: 6px 10px; }
}
[data-ogsc] .ink > div, [data-ogsc] .rows td { color: #e9edf1 !important; }
[data-ogsc] .muted > div, [data-ogsc] .rows .soft { color: #a3afba !important; }
[data-ogsb] .card { background-color: #1b2128 !important; }
</style>
<meta name="color-scheme" content="light dark" />
<meta name="supported-color-schemes" content="light dark" />
<meta name="format-detection" content="telephone=no, date=no, address=no, email=no" />
<meta name="x-apple-disable-message-reformatting" />
</head>
<body  class="page" style="word-spacing:normal;background-color:#f1f3f5;">
<div style="display:none;font-size:1px;color:#ffffff;line-height:1px;max-height:0px;max-width:0px;opacity:0;overflow:hidden;">${escapeHtml(mail.preheader)}&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;</div>
<div aria-label="${escapeHtml(mail.subject)}" aria-roledescription="email" role="article" lang="${escapeHtml(mail.locale)}" dir="ltr" style="word-spacing:normal;background-color:#f1f3f5;">
<!--[if mso | IE]><table align="center" border="0" cellpadding="0" cellspacing="0" class="" role="presentation" style="width:600px;" width="600" ><tr><td style="line-height:0px;font-size:0px;mso-line-height-rule:exactly;"><![endif]-->
<div  style="margin:0px auto;max-width:600px;">
<table align="center" border="0" cellpadding="0" cellspacing="0" role="presentation" style="width:100%;">
<tbody>
<tr>
<td style="direction:ltr;font-size:0px;padding:28px 0 16px;text-align:center;">
<!--[if mso | IE]><table role="presentation" border="0" cellpadding="0" cellspacing="0"><tr><td class="" style="vertical-align:top;width:600px;" ><![endif]-->
<div class="mj-column-per-100 mj-outlook-group-fix" style="font-size:0px;text-align:left;direction:ltr;display:inline-block;vertical-align:top;width:100%;">
<table border="0" cellpadding="0" cellspacing="0" role="presentation" style="vertical-align:top;" width="100%">
<tbody>
`;
  if (mail.brand.logo) {
    html += `
<tr>
<td align="left" class="ink logo" style="font-size:0px;padding:0 40px;word-break:break-word;">
<div style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:20px;font-weight:600;line-height:44px;text-align:left;color:#1f2933;"><img src="${escapeHtml(mail.brand.logo)}" alt="${escapeHtml(mail.brand.name)}" height="44" style="height:44px;width:auto;max-width:100%;object-fit:contain;line-height:44px;vertical-align:middle" /></div>
</td>
</tr>
`;
  } else {
    html += `
<tr>
<td align="left" class="ink" style="font-size:0px;padding:0 40px;word-break:break-word;">
<div style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:18px;font-weight:600;line-height:26px;text-align:left;color:#1f2933;">${escapeHtml(mail.brand.name)}</div>
</td>
</tr>
`;
  }
  html += `
</tbody>
</table>
</div>
<!--[if mso | IE]></td></tr></table><![endif]-->
</td>
</tr>
</tbody>
</table>
</div>
<!--[if mso | IE]></td></tr></table><table align="center" border="0" cellpadding="0" cellspacing="0" class="card-outlook" role="presentation" style="width:600px;" width="600" bgcolor="#ffffff" ><tr><td style="line-height:0px;font-size:0px;mso-line-height-rule:exactly;"><![endif]-->
<div  class="card" style="background:#ffffff;background-color:#ffffff;margin:0px auto;max-width:600px;border-radius:6px;overflow:hidden;">
<table align="center" border="0" cellpadding="0" cellspacing="0" role="presentation" style="background:#ffffff;background-color:#ffffff;width:100%;border-collapse:separate;">
<tbody>
<tr>
<td style="border-top:4px solid ${escapeHtml(mail.brand.color)};border-radius:6px;direction:ltr;font-size:0px;padding:36px 0 40px;text-align:center;">
<!--[if mso | IE]><table role="presentation" border="0" cellpadding="0" cellspacing="0"><tr><td class="" style="vertical-align:top;width:600px;" ><![endif]-->
<div class="mj-column-per-100 mj-outlook-group-fix" style="font-size:0px;text-align:left;direction:ltr;display:inline-block;vertical-align:top;width:100%;">
<table border="0" cellpadding="0" cellspacing="0" role="presentation" style="vertical-align:top;" width="100%">
<tbody>
<tr>
<td align="left" class="ink heading" style="font-size:0px;padding:0 40px;padding-bottom:18px;word-break:break-word;">
<div style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:30px;font-weight:700;line-height:37px;text-align:left;color:#1f2933;"><h1 style="margin:0;font-size:inherit;line-height:inherit;font-weight:inherit">`;
  for (const part of mail.heading) {
    if (part.whole) {
      html += `<span class="whole">${escapeHtml(part.text)}</span>`;
    } else {
      html += `${escapeHtml(part.text)}`;
    }
  }
  html += `</h1></div>
</td>
</tr>
`;
  for (const paragraph of mail.intro) {
    html += `
<tr>
<td align="left" class="ink" style="font-size:0px;padding:0 40px;padding-bottom:12px;word-break:break-word;">
<div style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:16px;line-height:24px;text-align:left;color:#1f2933;">`;
    for (const [at, line] of paragraph.entries()) {
      if (at > 0) {
        html += `<br />`;
      }
      html += `${escapeHtml(line)}`;
    }
    html += `</div>
</td>
</tr>
`;
  }
  for (const block of mail.blocks) {
    if (block.title) {
      html += `
<tr>
<td align="left" class="ink" style="font-size:0px;padding:0 40px;padding-top:24px;padding-bottom:4px;word-break:break-word;">
<div style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:18px;font-weight:700;line-height:26px;text-align:left;color:#1f2933;"><h2 style="margin:0;font-size:inherit;line-height:inherit;font-weight:inherit">${escapeHtml(block.title)}</h2></div>
</td>
</tr>
`;
    }
    for (const parcel of block.parcels) {
      if (parcel.link === null) {
        html += `
<tr>
<td align="left" class="ink" style="font-size:0px;padding:0 40px;padding-top:6px;padding-bottom:4px;word-break:break-word;">
<div style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:16px;line-height:24px;text-align:left;color:#1f2933;">${escapeHtml(parcel.text)}</div>
</td>
</tr>
`;
      } else if (mail.plainLinks) {
        html += `
<tr>
<td align="left" class="ink" style="font-size:0px;padding:0 40px;padding-top:3px;padding-bottom:3px;word-break:break-word;">
<div style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:16px;line-height:24px;text-align:left;color:#1f2933;"><a href="${escapeHtml(parcel.link)}" style="color:inherit;text-decoration:underline">${escapeHtml(parcel.text)}</a></div>
</td>
</tr>
`;
      } else {
        html += `
<tr>
<td align="left" class="button" style="font-size:0px;padding:6px 40px 6px;word-break:break-word;">
<table border="0" cellpadding="0" cellspacing="0" role="presentation" style="border-collapse:separate;line-height:100%;">
<tbody>
<tr>
<td align="center" bgcolor="${escapeHtml(mail.brand.color)}" role="presentation" style="border:1px solid ${escapeHtml(mail.edge)};border-radius:8px;cursor:auto;mso-padding-alt:${escapeHtml(mail.buttonPadding)};background:${escapeHtml(mail.brand.color)};" valign="middle">
<a href="${escapeHtml(parcel.link)}" style="display:inline-block;background:${escapeHtml(mail.brand.color)};color:${escapeHtml(mail.brand.color_text)};font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:16px;font-weight:600;line-height:22px;margin:0;text-decoration:none;text-transform:none;padding:${escapeHtml(mail.buttonPadding)};mso-padding-alt:0px;border-radius:8px;" target="_blank">
${escapeHtml(parcel.text)}
</a>
</td>
</tr>
</tbody>
</table>
</td>
</tr>
`;
      }
    }
    if (block.moreParcels) {
      html += `
<tr>
<td align="left" class="ink" style="font-size:0px;padding:0 40px;padding-top:3px;word-break:break-word;">
<div style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:16px;line-height:24px;text-align:left;color:#1f2933;">${escapeHtml(block.moreParcels)}</div>
</td>
</tr>
`;
    }
    if (block.list) {
      html += `
<tr>
<td align="left" class="muted" style="font-size:0px;padding:0 40px;padding-top:12px;word-break:break-word;">
<div style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:14px;line-height:20px;text-align:left;color:#5b6773;">${escapeHtml(block.list)}</div>
</td>
</tr>
`;
    }
    if (block.labels) {
      html += `
<tr>
<td align="left" class="ink" style="font-size:0px;padding:0 40px;padding-top:4px;word-break:break-word;">
<div style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:15px;line-height:24px;text-align:left;color:#1f2933;">`;
      for (const [at, label] of block.labels.entries()) {
        if (at > 0) {
          html += `, `;
        }
        if (label.whole) {
          html += `<span class="whole">${escapeHtml(label.text)}</span>`;
        } else {
          html += `${escapeHtml(label.text)}`;
        }
      }
      if (block.moreLabels) {
        html += ` ${escapeHtml(block.moreLabels)}`;
      }
      html += `</div>
</td>
</tr>
`;
    } else {
      html += `
<tr>
<td align="left" class="rows" style="font-size:0px;padding:6px 40px 0;word-break:break-word;">
<table cellpadding="0" cellspacing="0" role="presentation" width="100%" border="0" style="color:#1f2933;font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:16px;line-height:23px;table-layout:auto;width:100%;border:none;">
`;
      for (const [at, job] of block.jobs.entries()) {
        html += `<tr><td style="padding:9px 0;`;
        if (at > 0) {
          html += `border-top:1px solid #e3e7eb;`;
        }
        html += `word-break:break-word"><strong style="font-weight:600">${escapeHtml(job.label)}</strong>`;
        if (job.description) {
          html += `<br /><span class="soft" style="font-size:15px;color:#5b6773">${escapeHtml(job.description)}</span>`;
        }
        if (job.note) {
          html += `<br /><span style="font-size:15px">${escapeHtml(job.note)}</span>`;
        }
        html += `</td></tr>`;
      }
      html += `
</table>
</td>
</tr>
`;
    }
  }
  for (const paragraph of mail.outro) {
    html += `
<tr>
<td align="left" class="ink" style="font-size:0px;padding:0 40px;padding-top:20px;word-break:break-word;">
<div style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:16px;line-height:24px;text-align:left;color:#1f2933;">`;
    for (const [at, line] of paragraph.entries()) {
      if (at > 0) {
        html += `<br />`;
      }
      html += `${escapeHtml(line)}`;
    }
    html += `</div>
</td>
</tr>
`;
  }
  html += `
</tbody>
</table>
</div>
<!--[if mso | IE]></td></tr></table><![endif]-->
</td>
</tr>
</tbody>
</table>
</div>
<!--[if mso | IE]></td></tr></table><table align="center" border="0" cellpadding="0" cellspacing="0" class="" role="presentation" style="width:600px;" width="600" ><tr><td style="line-height:0px;font-size:0px;mso-line-height-rule:exactly;"><![endif]-->
<div  style="margin:0px auto;max-width:600px;">
<table align="center" border="0" cellpadding="0" cellspacing="0" role="presentation" style="width:100%;">
<tbody>
<tr>
<td style="direction:ltr;font-size:0px;padding:24px 0 40px;text-align:center;">
<!--[if mso | IE]><table role="presentation" border="0" cellpadding="0" cellspacing="0"><tr><td class="" style="vertical-align:top;width:600px;" ><![endif]-->
<div class="mj-column-per-100 mj-outlook-group-fix" style="font-size:0px;text-align:left;direction:ltr;display:inline-block;vertical-align:top;width:100%;">
<table border="0" cellpadding="0" cellspacing="0" role="presentation" style="vertical-align:top;" width="100%">
<tbody>
<tr>
<td align="left" class="muted" style="font-size:0px;padding:0 40px;word-break:break-word;">
<div style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:13px;line-height:20px;text-align:left;color:#5b6773;"><strong style="font-weight:600">${escapeHtml(mail.brand.name)}</strong>`;
  for (const line of mail.brand.footer) {
    html += `<br />${escapeHtml(line)}`;
  }
  if (mail.brand.website) {
    html += `<br /><a href="${escapeHtml(mail.brand.website)}" style="color:inherit;text-decoration:underline">${escapeHtml(mail.website)}</a>`;
  }
  html += `</div>
</td>
</tr>
<tr>
<td align="left" class="muted" style="font-size:0px;padding:0 40px;padding-top:14px;word-break:break-word;">
<div style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:13px;line-height:20px;text-align:left;color:#5b6773;">${escapeHtml(mail.footerReason)} <a href="${escapeHtml(mail.unsubscribeUrl)}" style="color:inherit;text-decoration:underline">${escapeHtml(mail.unsubscribe)}</a></div>
</td>
</tr>
</tbody>
</table>
</div>
<!--[if mso | IE]></td></tr></table><![endif]-->
</td>
</tr>
</tbody>
</table>
</div>
<!--[if mso | IE]></td></tr></table><![endif]-->
</div>
</body>
</html>`;
  return html;
}
