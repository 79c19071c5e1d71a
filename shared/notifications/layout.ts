// Made of layout.mjml; LAYOUT=write npx vitest run test/notification-words.test.ts makes it anew.

/** The HTML of e-mails, in Liquid. */
export const layout = `<!doctype html>
<html lang="{{ locale }}" dir="ltr" xmlns="http://www.w3.org/1999/xhtml" xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office">
<head>
<title>{{ subject }}</title>
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
@media (max-width: 479px) {
.ink, .muted, .rows, .button { padding-left: 22px !important; padding-right: 22px !important; }
.heading > div { font-size: 25px !important; line-height: 31px !important; }
.button > table, .button a { width: 100% !important; box-sizing: border-box; }
.card { border-radius: 0 !important; }
}
@media (prefers-color-scheme: dark) {
body, .page { background-color: #11151a !important; }
.card, .card > table { background-color: #1b2128 !important; }
.ink > div, .ink a, .rows td { color: #e9edf1 !important; }
.muted > div, .muted a, .rows .soft, .ink .soft { color: #a3afba !important; }
.rows td { border-color: #333d47 !important; }
.rule > p { border-color: #333d47 !important; }
.button td { border-color: #59646f !important; }
.logo img { background-color: #ffffff !important; border-radius: 6px; padding: 6px; }
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
<div style="display:none;font-size:1px;color:#ffffff;line-height:1px;max-height:0px;max-width:0px;opacity:0;overflow:hidden;">{{ preheader }}</div>
<div
aria-label="{{ subject }}" aria-roledescription="email" role="article" lang="{{ locale }}" dir="ltr" style="word-spacing:normal;background-color:#f1f3f5;"
>
<!--[if mso | IE]><table align="center" border="0" cellpadding="0" cellspacing="0" class="" role="presentation" style="width:600px;" width="600" ><tr><td style="line-height:0px;font-size:0px;mso-line-height-rule:exactly;"><![endif]-->
<div  style="margin:0px auto;max-width:600px;">
<table
align="center" border="0" cellpadding="0" cellspacing="0" role="presentation" style="width:100%;"
>
<tbody>
<tr>
<td
style="direction:ltr;font-size:0px;padding:28px 0 16px;text-align:center;"
>
<!--[if mso | IE]><table role="presentation" border="0" cellpadding="0" cellspacing="0"><tr><td class="" style="vertical-align:top;width:600px;" ><![endif]-->
<div
class="mj-column-per-100 mj-outlook-group-fix" style="font-size:0px;text-align:left;direction:ltr;display:inline-block;vertical-align:top;width:100%;"
>
<table
border="0" cellpadding="0" cellspacing="0" role="presentation" style="vertical-align:top;" width="100%"
>
<tbody>
{% if brand.logo %}
<tr>
<td
align="left" class="ink logo" style="font-size:0px;padding:0 40px;word-break:break-word;"
>
<div
style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:20px;font-weight:600;line-height:44px;text-align:left;color:#1f2933;"
><img src="{{ brand.logo }}" alt="{{ brand.name }}" height="44" style="height:44px;width:auto;max-width:100%;object-fit:contain;display:block" /></div>
</td>
</tr>
{% else %}
<tr>
<td
align="left" class="ink" style="font-size:0px;padding:0 40px;word-break:break-word;"
>
<div
style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:18px;font-weight:600;line-height:26px;text-align:left;color:#1f2933;"
>{{ brand.name }}</div>
</td>
</tr>
{% endif %}
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
<table
align="center" border="0" cellpadding="0" cellspacing="0" role="presentation" style="background:#ffffff;background-color:#ffffff;width:100%;border-collapse:separate;"
>
<tbody>
<tr>
<td
style="border-top:4px solid {{ brand.color }};border-radius:6px;direction:ltr;font-size:0px;padding:36px 0 40px;text-align:center;"
>
<!--[if mso | IE]><table role="presentation" border="0" cellpadding="0" cellspacing="0"><tr><td class="" style="vertical-align:top;width:600px;" ><![endif]-->
<div
class="mj-column-per-100 mj-outlook-group-fix" style="font-size:0px;text-align:left;direction:ltr;display:inline-block;vertical-align:top;width:100%;"
>
<table
border="0" cellpadding="0" cellspacing="0" role="presentation" style="vertical-align:top;" width="100%"
>
<tbody>
<tr>
<td
align="left" class="ink heading" style="font-size:0px;padding:0 40px;padding-bottom:18px;word-break:break-word;"
>
<div
style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:30px;font-weight:700;line-height:37px;text-align:left;color:#1f2933;"
><h1 style="margin:0;font-size:inherit;line-height:inherit;font-weight:inherit">{{ heading }}</h1></div>
</td>
</tr>
{% for paragraph in intro %}
<tr>
<td
align="left" class="ink" style="font-size:0px;padding:0 40px;padding-bottom:12px;word-break:break-word;"
>
<div
style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:16px;line-height:24px;text-align:left;color:#1f2933;"
>{% for line in paragraph %}{{ line }}{% unless forloop.last %}<br />{% endunless %}{% endfor %}</div>
</td>
</tr>
{% endfor %}{% for block in blocks %}{% if block.title %}
<tr>
<td
align="left" class="ink" style="font-size:0px;padding:0 40px;padding-top:24px;padding-bottom:4px;word-break:break-word;"
>
<div
style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:18px;font-weight:700;line-height:26px;text-align:left;color:#1f2933;"
><h2 style="margin:0;font-size:inherit;line-height:inherit;font-weight:inherit">{{ block.title }}</h2></div>
</td>
</tr>
{% endif %}{% for parcel in block.parcels %}{% if parcel.link == nil %}
<tr>
<td
align="left" class="ink" style="font-size:0px;padding:0 40px;padding-top:6px;padding-bottom:4px;word-break:break-word;"
>
<div
style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:16px;line-height:24px;text-align:left;color:#1f2933;"
>{{ parcel.text }}</div>
</td>
</tr>
{% elsif plain_links %}
<tr>
<td
align="left" class="ink" style="font-size:0px;padding:0 40px;padding-top:3px;padding-bottom:3px;word-break:break-word;"
>
<div
style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:16px;line-height:24px;text-align:left;color:#1f2933;"
><a href="{{ parcel.link }}" style="color:inherit;text-decoration:underline">{{ parcel.text }}</a></div>
</td>
</tr>
{% else %}
<tr>
<td
align="left" class="button" style="font-size:0px;padding:6px 40px 6px;word-break:break-word;"
>
<table
border="0" cellpadding="0" cellspacing="0" role="presentation" style="border-collapse:separate;line-height:100%;"
>
<tbody>
<tr>
<td
align="center" bgcolor="{{ brand.color }}" role="presentation" style="border:1px solid {{ edge }};border-radius:8px;cursor:auto;mso-padding-alt:{{ button_padding }};background:{{ brand.color }};" valign="middle"
>
<a
href="{{ parcel.link }}" style="display:inline-block;background:{{ brand.color }};color:{{ brand.color_text }};font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:16px;font-weight:600;line-height:22px;margin:0;text-decoration:none;text-transform:none;padding:{{ button_padding }};mso-padding-alt:0px;border-radius:8px;" target="_blank"
>
{{ parcel.text }}
</a>
</td>
</tr>
</tbody>
</table>
</td>
</tr>
{% endif %}{% endfor %}{% if block.more_parcels %}
<tr>
<td
align="left" class="ink" style="font-size:0px;padding:0 40px;padding-top:3px;word-break:break-word;"
>
<div
style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:16px;line-height:24px;text-align:left;color:#1f2933;"
>{{ block.more_parcels }}</div>
</td>
</tr>
{% endif %}{% if block.list %}
<tr>
<td
align="left" class="muted" style="font-size:0px;padding:0 40px;padding-top:12px;word-break:break-word;"
>
<div
style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:14px;line-height:20px;text-align:left;color:#5b6773;"
>{{ block.list }}</div>
</td>
</tr>
{% endif %}{% if block.labels %}
<tr>
<td
align="left" class="ink" style="font-size:0px;padding:0 40px;padding-top:4px;word-break:break-word;"
>
<div
style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:15px;line-height:24px;text-align:left;color:#1f2933;"
>{{ block.labels }}</div>
</td>
</tr>
{% else %}
<tr>
<td
align="left" class="rows" style="font-size:0px;padding:6px 40px 0;word-break:break-word;"
>
<table
cellpadding="0" cellspacing="0" width="100%" border="0" style="color:#1f2933;font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:16px;line-height:23px;table-layout:auto;width:100%;border:none;"
>
{% for job in block.jobs %}<tr><td style="padding:9px 0;{% unless forloop.first %}border-top:1px solid #e3e7eb;{% endunless %}word-break:break-word"><strong style="font-weight:600">{{ job.label }}</strong>{% if job.description %}<br /><span class="soft" style="font-size:15px;color:#5b6773">{{ job.description }}</span>{% endif %}{% if job.note %}<br /><span style="font-size:15px">{{ job.note }}</span>{% endif %}</td></tr>{% endfor %}
</table>
</td>
</tr>
{% endif %}{% endfor %}{% for paragraph in outro %}
<tr>
<td
align="left" class="ink" style="font-size:0px;padding:0 40px;padding-top:20px;word-break:break-word;"
>
<div
style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:16px;line-height:24px;text-align:left;color:#1f2933;"
>{% for line in paragraph %}{{ line }}{% unless forloop.last %}<br />{% endunless %}{% endfor %}</div>
</td>
</tr>
{% endfor %}
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
<table
align="center" border="0" cellpadding="0" cellspacing="0" role="presentation" style="width:100%;"
>
<tbody>
<tr>
<td
style="direction:ltr;font-size:0px;padding:24px 0 40px;text-align:center;"
>
<!--[if mso | IE]><table role="presentation" border="0" cellpadding="0" cellspacing="0"><tr><td class="" style="vertical-align:top;width:600px;" ><![endif]-->
<div
class="mj-column-per-100 mj-outlook-group-fix" style="font-size:0px;text-align:left;direction:ltr;display:inline-block;vertical-align:top;width:100%;"
>
<table
border="0" cellpadding="0" cellspacing="0" role="presentation" style="vertical-align:top;" width="100%"
>
<tbody>
<tr>
<td
align="left" class="muted" style="font-size:0px;padding:0 40px;word-break:break-word;"
>
<div
style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:13px;line-height:20px;text-align:left;color:#5b6773;"
><strong style="font-weight:600">{{ brand.name }}</strong>{% for line in brand.footer %}<br />{{ line }}{% endfor %}{% if brand.website %}<br /><a href="{{ brand.website }}" style="color:inherit;text-decoration:underline">{{ website }}</a>{% endif %}</div>
</td>
</tr>
<tr>
<td
align="left" class="muted" style="font-size:0px;padding:0 40px;padding-top:14px;word-break:break-word;"
>
<div
style="font-family:-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif;font-size:13px;line-height:20px;text-align:left;color:#5b6773;"
>{{ why }} <a href="{{ unsubscribe_url }}" style="color:inherit;text-decoration:underline">{{ unsubscribe }}</a></div>
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
